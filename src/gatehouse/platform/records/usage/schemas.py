"""Bodies of the responses of the usage endpoints."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import Field, PlainSerializer

from gatehouse.foundation.http.bodies import ResponseBody

#: A JSON number. The route encodes the decimal itself, so that it keeps all digits.
Cost = Annotated[Decimal, PlainSerializer(float, return_type=float)]


class UsageRecord(ResponseBody):
    id: UUID
    timestamp: Annotated[datetime, Field(description="Time at which the request arrived.")]
    request_id: str
    user_id: UUID | None
    group_id: UUID | None
    api_key_id: UUID | None
    client_id: UUID | None
    provider: Annotated[str | None, Field(description="Null if no provider was called.", examples=["openai"])]
    model_id: Annotated[str | None, Field(examples=["gpt-4o-mini"])]
    requested_model: Annotated[str | None, Field(description="Name of the model in the request.")]
    status: Annotated[str, Field(description="`success`, `refused`, `error`, `cancelled`, `interrupted`.")]
    stream: bool
    input_tokens: Annotated[
        int | None, Field(description="Input tokens, without tokens read from the provider's cache.")
    ]
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: Annotated[Cost | None, Field(description="Null if a price is unknown.", examples=[0.000123])]
    latency_ms: float | None
    time_to_first_token_ms: float | None
    provider_latency_ms: float | None
    fallbacks: Annotated[
        int, Field(description="Number of models that failed or were skipped before the model that answered.")
    ]
    routing_policy_id: str | None
    dlp_action: str | None
    end_user: Annotated[
        str | None,
        Field(
            description="The end user of the call: `user` or `safety_identifier` of OpenAI's bodies,"
            " `metadata.user_id` of Anthropic's, after DLP.",
            examples=["customer-4711"],
        ),
    ]
    tags: Annotated[
        list[str], Field(description="Tags from the request's header `X-Gateway-Tags`.", examples=[["team=search"]])
    ]


class UsageRecordsPage(ResponseBody):
    records: list[UsageRecord]
    total: int
    limit: int
    offset: int


SeriesPeriod: TypeAlias = Literal["day", "week", "month"]
SeriesStep: TypeAlias = Literal["hour", "day"]


class UsagePoint(ResponseBody):
    start: Annotated[datetime, Field(description="Beginning of the hour or day.")]
    requests: Annotated[int, Field(description="Requests that ended in this hour or day, including refused requests.")]
    errors: Annotated[int, Field(description="Requests in which the provider or the gateway failed.")]
    blocked: Annotated[int, Field(description="Requests that a rule, a limit, a budget or a kill switch stopped.")]
    dlp_triggers: Annotated[int, Field(description="Requests in which a DLP rule acted. Logging alone does not count.")]
    cost_usd: Annotated[Cost, Field(description="Cost, without requests whose price is unknown.", examples=[1.25])]


class UsageSeries(ResponseBody):
    period: SeriesPeriod
    step: Annotated[SeriesStep, Field(description="Length of a point: `hour` for `day`, otherwise `day`.")]
    points: Annotated[list[UsagePoint], Field(description="All hours or days until now, oldest first. At most 30.")]
