"""A tenant's policy, compiled: frozen, indexed, replaced whole and never changed."""

from collections.abc import Mapping

import msgspec

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.addresses import AddressRanges
from gatehouse.policy.budgets import Budgets
from gatehouse.policy.dlp import DlpPolicy
from gatehouse.policy.filters import FilterSet
from gatehouse.policy.governance import RegistryEnforcement
from gatehouse.policy.model_access import ModelAccess
from gatehouse.policy.overlay import Overrides
from gatehouse.policy.records import ModelRecord, ProviderRecord
from gatehouse.policy.routing import Routing
from gatehouse.policy.rules import RuleSet


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    tenant_id: TenantId
    revision: int
    providers: Mapping[str, ProviderRecord]
    #: catalog entries by `provider/model-id`
    models: Mapping[str, ModelRecord]
    #: the same by bare model id, for ids that may stand with several providers
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
    overrides: Overrides | None = None

    def find_model(self, name: str) -> ModelRecord | None:
        """The active entry that `provider/model-id`, or a bare id where it is unique, names; else None."""
        if self.overrides is not None:
            name = self.overrides.routes.get(name, name)
        entry = self.models.get(name)
        if entry is None:
            candidates = self.bare.get(name, ())
            entry = candidates[0] if len(candidates) == 1 else None
        return entry if entry is not None and entry.is_active else None
