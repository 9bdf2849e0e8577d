"""Bodies of the cost routing endpoints (docs/cost-routing.md)."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, PlainSerializer

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, partial, without
from gatehouse.policy.catalog import CapAction, Strategy
from gatehouse.policy.routing import Capability

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Cheap chat"])]
Description = Annotated[str, Field(max_length=2_000)]
Slug = Annotated[str, Field(min_length=1, max_length=64, examples=["openai"])]
ModelId = Annotated[str, Field(min_length=1, max_length=256, examples=["gpt-4o-mini"])]
NamedModel = Annotated[str, Field(min_length=1, max_length=320, description="`provider/model-id`, or a bare model id.")]
Usd = Annotated[
    Decimal, Field(gt=0, le=1_000_000, decimal_places=9, strict=False, allow_inf_nan=False, examples=[0.05])
]
ShownUsd = Annotated[Decimal, PlainSerializer(float, return_type=float)]
Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]
StrategyField = Annotated[
    Strategy, Field(description="How the model for `auto` is chosen; see the documentation on cost routing.")
]
LatencyBudget = Annotated[
    int,
    Field(ge=1, le=600_000, description="Models whose median latency of the last five minutes exceeds it come last."),
]
CacheTtl = Annotated[
    int,
    Field(
        ge=0,
        le=86_400,
        description="Seconds for which responses to the same request are cached; null or 0: not at all.",
    ),
]


class Filters(Body):
    """Restricts the models that the policy chooses from. Fields that are not sent, empty or null do not restrict."""

    min_context_window: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    required_capabilities: Annotated[list[Capability], Field(max_length=10, default_factory=list)]
    excluded_models: Annotated[list[NamedModel], Field(max_length=1_000, default_factory=list)]
    included_providers: Annotated[list[Slug], Field(max_length=200, default_factory=list)]
    max_cost_per_1k_input_tokens_usd: Usd | None = None


class Entry(Body):
    provider: Slug
    model_id: ModelId
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="The lowest is tried first.")] = 0
    cost_weight: Annotated[
        float,
        Field(ge=0, le=1_000, allow_inf_nan=False, description="Multiplies the model's cost under `balanced`."),
    ] = 1.0


class Cap(Body):
    max_cost_per_request_usd: Usd
    action_on_exceed: Annotated[
        CapAction,
        Field(description="`block`: 402. `use_cheapest`: the cheapest capable model answers. `warn`: audit log only."),
    ]


Groups = Annotated[
    list[Id],
    Field(max_length=1_000, description="The groups that it applies to. Empty: it is the organization's default."),
]
Chain = Annotated[list[Entry], Field(max_length=20)]


class NewPolicy(Body):
    """A complete policy. Fields that are not sent get their defaults."""

    name: Name
    description: Description | None = None
    enabled: bool = True
    strategy: StrategyField
    group_ids: Annotated[Groups, Field(default_factory=list)]
    model_filters: Annotated[Filters, Field(default_factory=lambda: Filters.model_validate({}))]
    fallback_chain: Annotated[Chain, Field(default_factory=list)]
    cost_cap: Cap | None = None
    latency_budget_ms: LatencyBudget | None = None
    cache_ttl_seconds: CacheTtl | None = None


@partial
@without("name", "description", "model_filters")
class PolicyUpdate(NewPolicy):
    """Fields that are not sent stay as they are. Name, description and filters are changed by PUT."""


class ShownFilters(ResponseBody):
    min_context_window: int | None
    required_capabilities: list[Capability]
    excluded_models: list[str]
    included_providers: list[str]
    max_cost_per_1k_input_tokens_usd: ShownUsd | None


class ShownEntry(ResponseBody):
    provider: str
    model_id: str
    priority: int
    cost_weight: float


class ShownCap(ResponseBody):
    max_cost_per_request_usd: ShownUsd
    action_on_exceed: CapAction


class Policy(ResponseBody):
    policy_id: UUID
    name: str
    description: str | None
    enabled: bool
    strategy: Strategy
    group_ids: list[UUID]
    model_filters: ShownFilters
    fallback_chain: list[ShownEntry]
    cost_cap: ShownCap | None
    latency_budget_ms: int | None
    cache_ttl_seconds: int | None
    created_at: datetime
    updated_at: datetime


class Policies(ResponseBody):
    policies: list[Policy]
    total: int


class SimulatedRequest(Body):
    model: Annotated[str | None, Field(max_length=320, description="Null: `auto`.", examples=["openai/gpt-4o"])] = None
    estimated_input_tokens: Annotated[Tokens, Field(examples=[1_200])]
    estimated_output_tokens: Annotated[Tokens, Field(examples=[400])]
    capabilities_needed: Annotated[list[Capability], Field(max_length=10, default_factory=list)]
    group_id: Annotated[Id | None, Field(description="The caller's group, for model access.")] = None
    request_fields: Annotated[
        list[Annotated[str, Field(max_length=64)]],
        Field(
            max_length=100,
            default_factory=list,
            description="Further fields of the request, hosted tools as `tools.mcp`, for permissions and rules.",
            examples=[["service_tier"]],
        ),
    ]


class Simulation(Body):
    policy_id: Annotated[Id, Field(description="Any policy of the organization, enabled or not.")]
    request: SimulatedRequest


DeploymentCredential = Annotated[
    str | None, Field(description="Label of the credential that the deployment of a model alias names, or null.")
]


class Selected(ResponseBody):
    provider: str
    model_id: str
    credential: DeploymentCredential
    reason: str


class Fallback(ResponseBody):
    provider: str
    model_id: str
    credential: DeploymentCredential
    estimated_cost_usd: Annotated[ShownUsd | None, Field(description="Null: the catalog has no price.")]


class CapCheck(ResponseBody):
    estimated_cost_usd: Annotated[ShownUsd | None, Field(description="Of the policy's first choice.")]
    limit_usd: ShownUsd | None
    would_block: bool


class Refused(ResponseBody):
    code: str | None
    message: str


class ShownCandidate(ResponseBody):
    provider: str
    model_id: str
    credential: DeploymentCredential
    outcome: Annotated[
        Literal["selected", "fallback", "rejected"],
        Field(description="`fallback`: it answers if those before it fail. `rejected`: it does not answer."),
    ]
    reason: str
    estimated_cost_usd: Annotated[ShownUsd | None, Field(description="Null: the catalog has no price.")]
    median_latency_ms: Annotated[float | None, Field(description="Of this worker. Null: unknown.")]


class Simulated(ResponseBody):
    selected_model: Annotated[Selected | None, Field(description="Null: no model may answer; see `refusal`.")]
    fallback_sequence: list[Fallback]
    candidates: Annotated[
        list[ShownCandidate],
        Field(
            description="The active models, 100 at most: the selected one, its fallbacks, then the rejected ones,"
            " beginning with those that pass the policy's filters."
        ),
    ]
    cost_cap_check: CapCheck
    refusal: Annotated[Refused | None, Field(description="The error that a caller would get.")]


Span = Literal["day", "week", "month"]


class ByModel(ResponseBody):
    provider: str
    model_id: str
    requests: int
    cost_usd: Annotated[ShownUsd | None, Field(description="Null where the catalog has no price for the model.")]
    pct: Annotated[float, Field(description="Percentage of the requests that went to a model.")]


class ByDeployment(ResponseBody):
    model_alias: Annotated[str, Field(examples=["fast"])]
    provider: str
    model_id: str
    shadow: Annotated[bool, Field(description="Whether these are copies for a shadow.")]
    requests: int
    cost_usd: Annotated[ShownUsd, Field(description="Cost, without requests whose price is unknown.")]
    pct: Annotated[
        float, Field(description="Percentage of the requests of the alias that deployments answered. 0 for a shadow.")
    ]


class Decisions(ResponseBody):
    by_model: list[ByModel]
    by_deployment: Annotated[
        list[ByDeployment],
        Field(description="Deployments of model aliases, those with the most requests first. At most 200."),
    ]
    cost_cap_blocks: int
    fallback_activations: Annotated[int, Field(description="Requests whose first choice did not answer.")]


class Analytics(ResponseBody):
    period: Span
    total_requests: int
    routing_decisions: Decisions
    total_cost_usd: ShownUsd
    avg_cost_per_request_usd: ShownUsd
