"""The compiled policy of a tenant. A snapshot is immutable; a change replaces it by a new one."""

from collections.abc import Mapping

import msgspec

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.addresses import AddressRanges
from gatehouse.policy.aliases import Alias
from gatehouse.policy.budgets import Budgets
from gatehouse.policy.catalog import ModelRecord, Overrides, ProviderRecord
from gatehouse.policy.dlp.compiled import DlpPolicy
from gatehouse.policy.filters import FilterSet
from gatehouse.policy.governance import RegistryEnforcement
from gatehouse.policy.mcp import McpServer
from gatehouse.policy.model_access import ModelAccess
from gatehouse.policy.routing import Routing
from gatehouse.policy.rules.evaluation import RuleSet


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    tenant_id: TenantId
    revision: int
    providers: Mapping[str, ProviderRecord]
    #: catalog entries by `provider/model-id`
    models: Mapping[str, ModelRecord]
    #: active entries by bare model id; if several providers have the model, the cheapest entry is first
    bare: Mapping[str, tuple[ModelRecord, ...]]
    feature_flags: Mapping[str, bool]
    dlp: DlpPolicy
    filters: FilterSet
    rules: RuleSet
    access: ModelAccess
    ip_allowlist: AddressRanges | None
    ip_bypass_for_mfa: bool
    budgets: Budgets
    #: empty while the feature flag `cost_routing` is off
    routing: Routing
    registry_enforcement: RegistryEnforcement = "off"
    #: fields of model calls that are forwarded with the organization's permission (`engine.fields`)
    allowed_fields: frozenset[str] = frozenset()
    #: fraction of requests of which a sample is stored
    sample_share: float = 0.0
    overrides: Overrides | None = None
    #: the organization's model aliases by name
    aliases: Mapping[str, Alias] = {}
    #: enabled MCP servers by name
    mcp_servers: Mapping[str, McpServer] = {}

    def find_alias(self, name: str) -> Alias | None:
        """Return the model alias with this name, or None. An override of an outpost takes precedence over an alias."""
        if not self.aliases or (self.overrides is not None and name in self.overrides.routes):
            return None
        return self.aliases.get(name)

    def knows(self, name: str) -> bool:
        """Return whether the name is a model alias or an active entry of the catalog."""
        return self.find_alias(name) is not None or bool(self.find_models(name))

    def find_model(self, name: str) -> ModelRecord | None:
        """Return the active entry for `provider/model-id` or a bare model id, or None. If there are several, return the
        cheapest entry."""
        return next(iter(self.find_models(name)), None)

    def find_models(self, name: str) -> tuple[ModelRecord, ...]:
        """Return the active entries for `provider/model-id` or a bare model id. The cheapest entry is first."""
        if self.overrides is not None:
            name = self.overrides.routes.get(name, name)
        entry = self.models.get(name)
        if entry is None:
            return self.bare.get(name, ())
        return (entry,) if entry.is_active else ()
