"""Bodies of the responses of the usage endpoints."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import Field, PlainSerializer

from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.platform.records.spend.schemas import AliasTraffic

#: A JSON number. The route encodes the decimal itself, so that it keeps all digits.
Cost = Annotated[Decimal, PlainSerializer(float, return_type=float)]

Sort = Literal["timestamp", "-timestamp", "cost_usd", "-cost_usd", "tokens", "-tokens", "latency_ms", "-latency_ms"]


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
    model_alias: Annotated[
        str | None,
        Field(description="Name of the model alias whose deployment answered. Null without one.", examples=["fast"]),
    ]
    shadow: Annotated[bool, Field(description="Whether this is a copy for a shadow, whose answer was discarded.")]


class UsageAttempt(ResponseBody):
    """A call to a model, or a model that was skipped."""

    provider: Annotated[str, Field(examples=["openai"])]
    model_id: Annotated[str, Field(examples=["gpt-4o-mini"])]
    status: Annotated[
        int | None,
        Field(description="HTTP status with which the provider refused. Null if it sent none.", examples=[503]),
    ]
    reason: Annotated[
        str | None,
        Field(
            description="Why the attempt failed, as in the error `all_providers_failed`. Null for the attempt that the"
            " provider answered.",
            examples=["http_503"],
        ),
    ]
    duration_ms: Annotated[
        float | None,
        Field(
            description="Time until the failure, the whole answer or the first event of a stream. Null if no call was"
            " made, or if it is unknown."
        ),
    ]
    credential: Annotated[
        str | None,
        Field(
            description="Label of the provider's credential. Null if it has only one and no deployment specifies it.",
            examples=["second"],
        ),
    ]


class UsageRecordDetails(UsageRecord):
    error_code: Annotated[
        str | None,
        Field(description="Code of the error that the client received (docs/errors.md).", examples=["dlp_violation"]),
    ]
    cache: Annotated[str | None, Field(description="`hit` or `miss` of the response cache. Null if it was not used.")]
    attempts: Annotated[
        list[UsageAttempt],
        Field(
            description="All attempts, oldest first: those that failed, then the one that was answered. Empty if no"
            " provider was called or the answer came from the cache."
        ),
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
    dlp_triggers: Annotated[int, Field(description="Requests in which a DLP rule acted. Logging alone is not counted.")]
    cost_usd: Annotated[Cost, Field(description="Cost, without requests whose price is unknown.", examples=[1.25])]


class UsagePart(AliasTraffic):
    """The usage of a model alias, or of one of its deployments."""

    requests: Annotated[int, Field(description="Requests of all points.")]
    errors: Annotated[int, Field(description="Errors of all points.")]
    cost_usd: Annotated[Cost, Field(description="Cost of all points.", examples=[1.25])]
    points: Annotated[list[UsagePoint], Field(description="As in the series, with this usage alone.")]


class UsageSeries(ResponseBody):
    period: SeriesPeriod
    step: Annotated[SeriesStep, Field(description="Length of a point: `hour` for `day`, otherwise `day`.")]
    points: Annotated[list[UsagePoint], Field(description="All hours or days until now, oldest first. At most 30.")]
    parts: Annotated[
        list[UsagePart],
        Field(
            description="With `by`: the 50 aliases or deployments with the most requests, in this order. Without `by`,"
            " the list is empty."
        ),
    ]
