"""The policy records of providers, models, routing policies and model aliases, and all policy records of an
organization (`TenantRecords`).

A host compiles them to a snapshot. Policy bundles contain them in the same form. Readers ignore unknown fields.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.settings import EgressPolicy
from gatehouse.policy.budgets import BudgetRecord
from gatehouse.policy.governance import GovernanceRecords
from gatehouse.policy.mcp import McpServerRecord
from gatehouse.policy.model_access import ModelAccessRecord

#: Key of every model in `Overrides.disabled`.
EVERY_MODEL: Final = "*"


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides of an organization's records by the operator of an outpost (docs/outposts.md, "Operators' calls"). They
    are applied when the records are compiled. The platform has no overrides.

    `disabled` maps a model to the ids of the providers that are not used for it. The model is a bare id,
    `provider/model-id`, or `*` for every model. `routes` maps the name of a model in a request to the catalog entry
    that is used for it, as `provider/model-id`.
    """

    disabled: Mapping[str, frozenset[str]] = {}
    routes: Mapping[str, str] = {}

    def disables(self, provider: str, model_id: str) -> bool:
        names = (EVERY_MODEL, model_id, f"{provider}/{model_id}")
        return any(provider in self.disabled.get(name, ()) for name in names)


#: the header that contains the key
KeyHeader: TypeAlias = Literal["authorization", "x-api-key", "api-key"]
LimitField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
#: Fields of a chat that a quirk can remove. A request without them still requests the same kind of answer.
RemovableField: TypeAlias = Literal[
    "frequency_penalty", "logit_bias", "logprobs", "metadata", "modalities", "parallel_tool_calls", "prediction",
    "presence_penalty", "reasoning_effort", "safety_identifier", "seed", "service_tier", "stop", "store",
    "temperature", "top_k", "top_logprobs", "top_p", "user", "verbosity",
]  # fmt: skip


class Quirks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a provider differs from the API whose dialect it speaks (docs/providers.md). None means that the provider
    does not differ. In the quirks that an administrator sets, None means that the preset applies."""

    key_header: KeyHeader | None = None
    #: the field that limits the output tokens
    limit_field: LimitField | None = None
    #: false: messages of the role `developer` are sent as `system`
    developer_role: bool | None = None
    #: false: `stream_options` is not sent, and the usage of streams is estimated
    stream_options: bool | None = None
    #: false: the names of messages are not sent
    message_names: bool | None = None
    #: false: `reasoning_content` of earlier answers is not sent
    reasoning_content: bool | None = None
    #: whether converted bodies have a `prompt_cache_key`
    prompt_cache_key: bool | None = None
    removed_fields: tuple[RemovableField, ...] | None = None
    #: the path of reranking at the provider's host, instead of `/rerank` below the base URL
    rerank_path: str | None = None

    def over(self, base: "Quirks | None") -> "Quirks":
        """Return these quirks. A quirk that is None has the value of `base`."""
        return self if base is None else msgspec.structs.replace(base, **self.own)

    @property
    def own(self) -> dict[str, object]:
        """The quirks that are not None, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


NO_QUIRKS: Final = Quirks()


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one provider (docs/providers.md). The kind determines which ones apply."""

    timeout_ms: int = 30_000
    max_retries: int = 2
    base_url: str | None = None
    #: the request format of a provider of kind `byoe`: `openai` or `anthropic`
    format: str | None = None
    hosted_endpoint: str | None = None
    hosted_api_version: str | None = None
    cloud_region: str | None = None
    cloud_access_key_id: str | None = None
    cloud_project: str | None = None
    cloud_location: str | None = None
    entra_tenant_id: str | None = None
    entra_client_id: str | None = None
    #: whether the gateway authenticates with the role of its machine instead of keys
    use_instance_role: bool = False
    local_runtime_base_url: str | None = None
    #: whether the provider has OpenAI's Responses API; None: the kind's default
    responses_api: bool | None = None
    #: id of the preset whose quirks the provider has
    preset: str | None = None
    #: None if there are no quirks. The database contains only the quirks that the administrator set. In the policy, the
    #: other quirks have the values of the preset.
    quirks: Quirks | None = None

    @property
    def own_address(self) -> bool:
        """Return whether the settings contain an address that replaces the vendor's address."""
        return bool(self.base_url or self.hosted_endpoint or self.local_runtime_base_url)


CredentialState: TypeAlias = Literal["active", "draining", "disabled"]
#: Label of the credential that a provider is created with (`ProviderRecord.sealed_credentials`).
DEFAULT_CREDENTIAL: Final = "default"


class CredentialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A credential of a provider other than the default one. A `draining` credential is used only if no active one is
    available. A `disabled` credential is never used. `sealed` is a sealed JSON object."""

    label: str
    state: CredentialState = "active"
    sealed: str | None = None


def credential_key(provider_id: str, label: str) -> str:
    """Return the name of a provider's credential. The sealed text of the credential is bound to this name. The name of
    the default credential is the id of the provider."""
    return provider_id if label == DEFAULT_CREDENTIAL else f"{provider_id}/{label}"


def provider_id_of(key: str) -> str:
    """Return the id of the provider whose credential has this name (`credential_key`)."""
    return key.partition("/")[0]


class ProviderRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A provider of an organization. `id` is the slug in `provider/model-id`. `sealed_credentials` is the default
    credential, a sealed JSON object, or None. `credentials` are the further ones."""

    id: str
    name: str
    kind: str
    enabled: bool = True
    sealed_credentials: str | None = None
    #: state of the default credential
    credential_state: CredentialState = "active"
    credentials: tuple[CredentialRecord, ...] = ()
    config: ProviderConfig = ProviderConfig()
    #: the operator's stricter egress policy for this organization; never sent to outposts
    egress_policy: EgressPolicy | None = None

    def state_of(self, label: str) -> CredentialState | None:
        """Return the state of the credential with this label, or None if the provider has none."""
        if label == DEFAULT_CREDENTIAL:
            return self.credential_state
        return next((entry.state for entry in self.credentials if entry.label == label), None)

    @property
    def egress(self) -> EgressPolicy | None:
        """Return the value of `OutboundRequest.egress`."""
        return (self.egress_policy or "private") if self.config.own_address else None


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One entry of the model catalog. Costs are in USD per token. None means unknown."""

    id: UUID
    provider: str
    model_id: str
    display_name: str | None = None
    is_active: bool = True
    is_default: bool = False
    access: str = "open"
    context_window: int | None = None
    max_output_tokens: int | None = None
    capabilities: dict[str, bool | int] = {}
    cost_per_input_token: Decimal | None = None
    cost_per_output_token: Decimal | None = None
    cost_per_cached_input_token: Decimal | None = None
    cost_per_cache_write_token: Decimal | None = None
    created_at: float = 0.0

    @cached_property
    def dearest(self) -> tuple[float, float | None] | None:
        """Return the highest price of an input token of any class, and the price of an output token, in USD. They are
        used for the upper bound of a call's cost. Return None if the input price is unknown."""
        prices = (self.cost_per_input_token, self.cost_per_cached_input_token, self.cost_per_cache_write_token)
        if prices[0] is None:
            return None
        output_price = self.cost_per_output_token
        return float(max(price for price in prices if price is not None)), None if output_price is None else float(
            output_price
        )


Strategy: TypeAlias = Literal[
    "cost_optimized", "quality_optimized", "latency_optimized", "balanced", "round_robin", "manual_fallback"
]
CapAction: TypeAlias = Literal["block", "use_cheapest", "warn"]


class ModelFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters for the models that a routing policy chooses from. Excluded models are named by `provider/model-id` or by
    their bare id."""

    min_context_window: int | None = None
    #: names of `policy.routing.Capability`
    required_capabilities: tuple[str, ...] = ()
    excluded_models: frozenset[str] = frozenset()
    included_providers: frozenset[str] = frozenset()
    max_cost_per_1k_input_tokens_usd: Decimal | None = None


class ChainEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a fallback chain. The entry with the lowest `priority` is tried first. With the strategy `balanced`,
    the price of the model is multiplied by `cost_weight`."""

    provider: str
    model_id: str
    priority: int = 0
    cost_weight: float = 1.0


class CostCap(msgspec.Struct, frozen=True, kw_only=True):
    max_cost_per_request_usd: Decimal
    action_on_exceed: CapAction


class RoutingPolicyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An enabled routing policy (docs/cost-routing.md). A policy without groups is the organization's default."""

    id: UUID
    name: str
    strategy: Strategy
    group_ids: tuple[UUID, ...] = ()
    model_filters: ModelFilters = ModelFilters()
    fallback_chain: tuple[ChainEntry, ...] = ()
    cost_cap: CostCap | None = None
    latency_budget_ms: int | None = None
    #: seconds for which responses are cached; None if they are not cached
    cache_ttl_seconds: int | None = None


Balance: TypeAlias = Literal["weighted", "least_busy", "lowest_latency"]
DeploymentRole: TypeAlias = Literal["live", "shadow"]


class DeploymentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment of a model alias: one catalog entry, its share of the requests and its limits. A `shadow` receives
    copies of the fraction `share` of the requests. The weight, the tier and the limits apply to deployments with the
    role `live`."""

    provider: str
    model_id: str
    role: DeploymentRole = "live"
    weight: int = 1
    #: deployments of the lowest tier are used first
    tier: int = 0
    share: float = 1.0
    max_concurrent_requests: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    #: label of the provider's credential that is used; None: all its credentials in turn
    credential: str | None = None


class ModelAliasRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An enabled model alias (docs/deployments.md)."""

    id: UUID
    name: str
    balance: Balance = "weighted"
    #: whether a conversation stays at its deployment
    sticky: bool = False
    deployments: tuple[DeploymentRecord, ...] = ()


class TenantRecords(msgspec.Struct, frozen=True, kw_only=True):
    """All records that decisions about a tenant's requests depend on, at one revision."""

    tenant_id: TenantId
    revision: int
    providers: tuple[ProviderRecord, ...] = ()
    models: tuple[ModelRecord, ...] = ()
    feature_flags: dict[str, bool] = {}
    governance: GovernanceRecords = GovernanceRecords()
    #: the models that groups may or may not use
    model_access: tuple[ModelAccessRecord, ...] = ()
    #: CIDR ranges of permitted addresses; None if the allowlist is not enforced
    ip_allowlist: tuple[str, ...] | None = None
    #: whether a caller with a recent second factor may call from any address
    ip_bypass_for_mfa: bool = False
    #: time zone in which the days and months of budgets begin
    timezone: str = "UTC"
    budgets: tuple[BudgetRecord, ...] = ()
    #: in the order of their creation
    routing_policies: tuple[RoutingPolicyRecord, ...] = ()
    model_aliases: tuple[ModelAliasRecord, ...] = ()
    #: request fields that need the organization's permission, and that the organization has permitted
    allowed_fields: tuple[str, ...] = ()
    #: fraction of requests of which a sample is stored
    sample_share: float = 0.0
    #: enabled MCP servers; never part of a bundle
    mcp_servers: tuple[McpServerRecord, ...] = ()
    #: the overrides of the host that compiles the records; never part of a bundle
    overrides: Overrides | None = None


class Candidate(msgspec.Struct, frozen=True):
    """A model that could answer a call: an entry of the catalog at its provider. `credential` is the label of the
    credential that must be used. If it is None, any credential of the provider may be used."""

    provider: ProviderRecord
    model: ModelRecord
    credential: str | None = None

    @property
    def name(self) -> str:
        """Return a name that differs between candidates: `provider/model-id`, or `provider:label/model-id` with a
        credential. The id of a provider has no colon."""
        if self.credential is None:
            return f"{self.provider.id}/{self.model.model_id}"
        return f"{self.provider.id}:{self.credential}/{self.model.model_id}"
