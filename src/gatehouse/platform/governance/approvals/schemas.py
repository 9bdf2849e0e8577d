"""Bodies of the approvals' endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody

Status = Literal["pending", "approved", "denied", "expired", "cancelled"]

Sort = Literal["created_at", "-created_at", "expires_at", "-expires_at"]


class Decision(Body):
    reason: Annotated[
        str | None,
        Field(max_length=1000, description="Stored with the decision.", examples=["Test data, checked with finance."]),
    ] = None


class Approval(ResponseBody):
    id: UUID
    request_id: str
    user_id: UUID | None
    client_id: UUID | None
    reason: Annotated[str, Field(description="The reason why the request waits for a decision, without its text.")]
    rule_id: str | None
    rule_name: str | None
    entity_types: list[str]
    direction: Literal["input", "output"]
    model: Annotated[str | None, Field(description="The model as named in the request.")]
    status: Status
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: Annotated[str | None, Field(description="User or client who decided. Null without a decision.")]
    decision_reason: str | None


class ApprovalsPage(ResponseBody):
    items: list[Approval]
    total: int
    page: int
    page_size: int
