"""Response bodies of the endpoint of one's own usage (docs/records.md)."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, PlainSerializer

from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.policy.budgets import Period

UsagePeriod: TypeAlias = Literal["day", "week", "month"]
ShownUsd = Annotated[Decimal, PlainSerializer(float, return_type=float)]


class UsageTotals(ResponseBody):
    requests: Annotated[int, Field(description="All requests with a record, refused ones included.")]
    refused: Annotated[int, Field(description="Requests that the gateway refused.")]
    redacted: Annotated[int, Field(description="Requests in which DLP redacted something.")]
    input_tokens: Annotated[int, Field(description="Without tokens read from the provider's cache.")]
    output_tokens: int
    cached_tokens: int
    cost_usd: Annotated[ShownUsd, Field(description="Without requests whose price is unknown.", examples=[1.25])]


class UsageDay(UsageTotals):
    day: date


class UsageModel(UsageTotals):
    provider: Annotated[str | None, Field(description="Null if no provider was called.", examples=["openai"])]
    model_id: Annotated[str | None, Field(examples=["gpt-4o-mini"])]


class BudgetLeft(ResponseBody):
    """A budget that the caller's calls count against. The amounts are those recorded in its current period."""

    scope_type: Annotated[
        Literal["tenant", "group", "user", "api_key", "plan"],
        Field(description="`plan`: the monthly requests that the organization's plan includes."),
    ]
    scope_name: Annotated[str | None, Field(description="Of the organization, the group or the API key.")]
    period: Period
    period_end: datetime
    blocks: Annotated[bool, Field(description="Whether calls over the limit are refused.")]
    limit_usd: ShownUsd | None
    limit_requests: int | None
    limit_tokens: int | None
    remaining_usd: Annotated[ShownUsd | None, Field(description="Null without a limit in dollars.")]
    remaining_requests: int | None
    remaining_tokens: int | None


class UsageSummary(ResponseBody):
    since: Annotated[datetime, Field(description="The first moment of the first day.")]
    time_zone: Annotated[str, Field(examples=["Europe/Zurich"])]
    total: UsageTotals
    days: Annotated[list[UsageDay], Field(description="Every day of the period, oldest first.")]
    models: Annotated[list[UsageModel], Field(description="By cost, then by requests.")]
    budgets: Annotated[list[BudgetLeft], Field(description="Your own first, then those that you share.")]
