"""Bodies of the endpoints of access requests."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field, PlainSerializer

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody
from gatehouse.platform.access.model_access.schemas import ModelName
from gatehouse.platform.routing.budgets.schemas import Count, Usd
from gatehouse.policy.budgets import Period

Kind = Literal["model", "limit"]
Status = Literal["pending", "approved", "denied", "withdrawn"]
Sort = Literal["created_at", "-created_at", "limit_usd", "-limit_usd"]
#: Names of the limits' fields in requests, approvals and budgets.
LIMIT_NAMES: Final = ("limit_usd", "limit_requests", "limit_tokens")
ShownUsd = Annotated[Decimal, PlainSerializer(float, return_type=float)]


class NewAccessRequest(Body):
    """The kind `model` requires `model`. The kind `limit` requires `period` and at least one of the three limits."""

    kind: Kind
    model: Annotated[ModelName | None, Field(description="`provider/model-id` of a model that you can request.")] = None
    period: Annotated[Period | None, Field(description="The period of the budget to raise.", examples=["month"])] = None
    limit_usd: Usd | None = None
    limit_requests: Annotated[Count | None, Field(examples=[10_000])] = None
    limit_tokens: Annotated[Count | None, Field(description="Maximum input and output tokens together.")] = None
    reason: Annotated[
        str,
        Field(
            min_length=1, max_length=1000, description="The purpose for which you need it.", examples=["Translations."]
        ),
    ]


class AccessApproval(Body):
    """The parts of the grant that differ from the request."""

    reason: Annotated[
        str | None, Field(max_length=1000, description="Stored with the decision, and shown to the requester.")
    ] = None
    group_id: Annotated[
        Id | None,
        Field(
            description="For a model: a group whose rule allows it. If null, the group that was created for this model."
            " The first approval creates it."
        ),
    ] = None
    limit_usd: Annotated[Usd | None, Field(description="Replaces the limit of the request; null removes it.")] = None
    limit_requests: Count | None = None
    limit_tokens: Count | None = None


class Granted(ResponseBody):
    """The grant of an approval: a membership, or the limits of a budget."""

    group_id: UUID | None
    group_name: Annotated[str | None, Field(description="The group's name at the time of the approval.")]
    limit_usd: ShownUsd | None
    limit_requests: int | None
    limit_tokens: int | None


class AccessRequest(ResponseBody):
    id: UUID
    user_id: UUID
    kind: Kind
    model: str | None
    period: Period | None
    limit_usd: ShownUsd | None
    limit_requests: int | None
    limit_tokens: int | None
    reason: str
    status: Status
    granted: Granted | None
    created_at: datetime
    decided_at: Annotated[
        datetime | None,
        Field(description="The time of the decision or the withdrawal. Null if the request is pending."),
    ]
    decided_by: Annotated[str | None, Field(description="User or client who decided. Null without a decision.")]
    decision_reason: str | None


class AccessRequestsPage(ResponseBody):
    items: list[AccessRequest]
    total: int
    page: int
    page_size: int


class RequestableModel(ResponseBody):
    model: Annotated[
        str, Field(description="`provider/model-id`, as `model` of a request.", examples=["openai/gpt-4o"])
    ]
    display_name: str | None


class RequestableModelsPage(ResponseBody):
    items: list[RequestableModel]
    total: int
    page: int
    page_size: int
