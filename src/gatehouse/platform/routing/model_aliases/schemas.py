"""Bodies of the endpoints of model aliases."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, PlainSerializer

from gatehouse.foundation.http.bodies import Body, ResponseBody, partial, without
from gatehouse.platform.routing.fields import ModelId, Slug
from gatehouse.platform.routing.provider_credentials.schemas import Label
from gatehouse.policy.aliases import MAX_DEPLOYMENTS, NAME
from gatehouse.policy.catalog import Balance, DeploymentRole


def _check_name(name: str) -> str:
    if name == "auto":
        raise ValueError("must not be `auto`, because that name selects the model by the routing policy")
    return name


Name = Annotated[
    str,
    AfterValidator(_check_name),
    Field(
        pattern=NAME,
        examples=["fast"],
        description="The model name that callers send. It takes precedence over a bare model id of the catalog.",
    ),
]
Description = Annotated[str, Field(max_length=2_000)]
BalanceField = Annotated[
    Balance,
    Field(
        description="How the deployment of a tier is chosen for a request: by `weighted` shares, the `least_busy`, or"
        " the one with the `lowest_latency`."
    ),
]
Sticky = Annotated[
    bool,
    Field(description="Whether a conversation stays at its deployment. Only with `weighted`."),
]
Usd = Annotated[Decimal, PlainSerializer(float, return_type=float)]


Sort = Literal["name", "-name", "balance", "-balance", "created_at", "-created_at", "updated_at", "-updated_at"]


class DeploymentFields(Body):
    """A deployment. `share` applies to the role `shadow`; weight, tier and limits apply to the role `live`."""

    provider: Slug
    model_id: ModelId
    credential: Annotated[
        Label | None,
        Field(description="Label of the provider's credential that is used. Null: all its credentials in turn."),
    ] = None
    role: Annotated[
        DeploymentRole, Field(description="`shadow`: it receives copies of requests, and its answers are discarded.")
    ] = "live"
    weight: Annotated[
        int, Field(ge=0, le=1_000, description="Share of the tier's requests. 0: only if the others fail.")
    ] = 1
    tier: Annotated[int, Field(ge=0, le=31, description="The lowest tier with an available deployment answers.")] = 0
    share: Annotated[
        float,
        Field(ge=0, le=1, allow_inf_nan=False, description="Fraction of the requests that is copied to a shadow."),
    ] = 1.0
    max_concurrent_requests: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    requests_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000_000)] | None = None


Deployments = Annotated[list[DeploymentFields], Field(min_length=1, max_length=MAX_DEPLOYMENTS)]


class NewModelAlias(Body):
    name: Name
    description: Description | None = None
    enabled: bool = True
    balance: BalanceField = "weighted"
    sticky: Sticky = False
    deployments: Deployments


@partial
@without("name")
class ModelAliasUpdate(NewModelAlias):
    """Partial: omitted fields keep their values. The name cannot change, because usage records contain it."""


class AliasDeployment(ResponseBody):
    provider: str
    model_id: str
    credential: Annotated[str | None, Field(description="Null: all credentials of the provider in turn.")] = None
    role: DeploymentRole
    weight: int
    tier: int
    share: float
    max_concurrent_requests: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None


class ModelAlias(ResponseBody):
    id: UUID
    tenant_id: UUID
    name: str
    description: str | None
    enabled: bool
    balance: Balance
    sticky: bool
    deployments: list[AliasDeployment]
    created_at: datetime
    updated_at: datetime


class ModelAliasList(ResponseBody):
    model_aliases: list[ModelAlias]
    total: int
    limit: int
    offset: int


class DeploymentComparison(ResponseBody):
    provider: str
    model_id: str
    credential: Annotated[str | None, Field(description="Null unless the deployment specifies a credential.")]
    role: DeploymentRole
    requests: Annotated[int, Field(description="Requests that were sent to the deployment.")]
    errors: Annotated[
        int, Field(description="Failed requests, including those after which another deployment answered.")
    ]
    error_rate: Annotated[float, Field(description="`errors` divided by `requests`.")]
    cost_usd: Annotated[Usd, Field(description="Cost, without requests whose price is unknown.")]
    input_tokens: int
    output_tokens: int
    latency_median_ms: Annotated[float | None, Field(description="Of successful requests, until the last byte.")]
    latency_p95_ms: float | None
    time_to_first_token_median_ms: Annotated[float | None, Field(description="Of successful streams.")]


class Comparison(ResponseBody):
    alias: str
    since: datetime
    until: datetime
    records: Annotated[int, Field(description="Usage records that were compared, the newest first.")]
    truncated: Annotated[bool, Field(description="Whether the period has more records than are compared.")]
    deployments: Annotated[
        list[DeploymentComparison],
        Field(
            description="Every deployment that the alias has, and every other one that received requests in the period."
        ),
    ]
