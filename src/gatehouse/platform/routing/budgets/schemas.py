"""Bodies of the budgets' endpoints (docs/budgets.md)."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, PlainSerializer

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, partial
from gatehouse.policy.budgets import Period, ScopeType

Usd = Annotated[
    Decimal,
    Field(gt=0, le=1_000_000_000, decimal_places=9, strict=False, allow_inf_nan=False, examples=[250]),
]
Count = Annotated[int, Field(ge=1, le=1_000_000_000_000_000)]
Action = Annotated[
    Literal["block", "warn"],
    Field(description="Of requests over the limit. `block`: 429. `warn`: they pass, and `quota_exceeded` is sent."),
]
ShownUsd = Annotated[Decimal, PlainSerializer(float, return_type=float)]


class _Limits(Body):
    limit_usd: Usd | None = None
    limit_requests: Annotated[Count | None, Field(examples=[10_000])] = None
    limit_tokens: Annotated[Count | None, Field(description="Input and output together.")] = None
    action: Action = "block"


class NewBudget(_Limits):
    """At least one of the three limits is required."""

    scope_type: ScopeType
    scope_id: Annotated[
        Id | None,
        Field(description="Id of the group, user or API key, `client_id` of the OAuth client. Not for `tenant`."),
    ] = None
    period: Annotated[Period, Field(description="Days and months begin at midnight in the organization's time zone.")]


@partial
class BudgetUpdate(_Limits):
    """Fields that are not sent stay as they are; null removes a limit. Scope and period cannot change."""

    scope_type: Annotated[ScopeType | None, Field(description="Cannot change.")] = None
    scope_id: Annotated[Id | None, Field(description="Cannot change.")] = None
    period: Annotated[Period | None, Field(description="Cannot change.")] = None


class Current(ResponseBody):
    """What is recorded for the current period. Requests in progress are not included."""

    period_start: datetime
    period_end: datetime
    spent_usd: ShownUsd
    spent_requests: int
    spent_tokens: int


class Budget(ResponseBody):
    id: UUID
    tenant_id: UUID
    scope_type: ScopeType
    scope_id: UUID
    period: Period
    limit_usd: ShownUsd | None
    limit_requests: int | None
    limit_tokens: int | None
    action: Action
    current: Current
    created_at: datetime
    updated_at: datetime


Sort = Literal[
    "scope_type",
    "-scope_type",
    "period",
    "-period",
    "limit_usd",
    "-limit_usd",
    "limit_requests",
    "-limit_requests",
    "limit_tokens",
    "-limit_tokens",
    "created_at",
    "-created_at",
]


class BudgetPage(ResponseBody):
    items: list[Budget]
    total: int
    page: int
    page_size: int
