"""Records of governance: DLP, content filters, policy rules, compliance bundles, the model registry.

Readers ignore unknown fields. The platform and a bundle store the records in the same form. `policy.compile` and
`policy.dlp.compile` compile them.
"""

from typing import Literal, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.detection.pattern import ActionTier

DetectorType: TypeAlias = Literal["regex", "ner", "llm"]
OverrideAction: TypeAlias = Literal["ALLOW", "BLOCK", "REDACT"]
FilterType: TypeAlias = Literal["keyword_block", "topic_block", "custom_instruction"]
RegistryEnforcement: TypeAlias = Literal["off", "warn", "block"]
PolicyAction: TypeAlias = Literal["ALLOW", "BLOCK", "REQUIRE_APPROVAL", "ROUTE", "LOG"]


class DlpRuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An enabled rule of an organization, or one of its custom patterns (`custom`), which is also a `regex` rule.

    A `regex` rule with a `pattern` applies to the matches of the pattern. A `regex` rule without a `pattern` replaces
    the platform's rules for the built-in patterns of its entity type. A `ner` rule applies to `entities`, or to all
    entities if `entities` is empty. An `llm` rule applies to the `labels` whose score is at least `label_threshold`.
    """

    id: str
    name: str
    detector_type: DetectorType
    entity_type: str
    action: ActionTier
    threshold: float = 0.5
    pattern: str | None = None
    context: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    label_threshold: float = 0.5
    #: whether labels in the model's answer are replaced by the original values before the caller receives the answer
    reversible: bool = False
    custom: bool = False


class BundleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An enabled, active compliance bundle. Findings of its entity types are at least redacted. `framework` and
    `version` are only displayed and exported."""

    id: UUID
    name: str
    entity_types: tuple[str, ...]
    framework: str = ""
    version: str = ""


class FilterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An enabled content filter. `group_id` is None for the whole organization. Records are in the order of their
    priority."""

    id: UUID
    name: str
    filter_type: FilterType
    priority: int
    group_id: UUID | None = None
    keywords: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    #: minimum score of a topic
    threshold: float = 0.5
    instruction: str | None = None


class PolicyRuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An enabled rule of the policy engine. `condition` is a CEL expression. Records are in the order of their
    priority."""

    id: UUID
    name: str
    priority: int
    condition: str
    action: PolicyAction
    #: for ROUTE: `provider/model-id`
    route_to: str | None = None
    terminal: bool = True
    message: str | None = None


class RegistryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of a model in the model registry (docs/model-registry.md)."""

    provider: str
    model_id: str
    risk_tier: str
    validation_status: str


class GovernanceRecords(msgspec.Struct, frozen=True, kw_only=True):
    dlp_rules: tuple[DlpRuleRecord, ...] = ()
    #: ids of built-in patterns that the organization has switched off
    suppressions: frozenset[str] = frozenset()
    #: maps a group, then an entity type, to the action of the override
    overrides: dict[UUID, dict[str, OverrideAction]] = {}
    bundles: tuple[BundleRecord, ...] = ()
    filters: tuple[FilterRecord, ...] = ()
    policy_rules: tuple[PolicyRuleRecord, ...] = ()
    registry: tuple[RegistryRecord, ...] = ()
    #: risk tier of a model that is not in the registry
    unregistered_model_tier: str = "tier_4"
    #: action for models that are not validated in the registry
    registry_enforcement: RegistryEnforcement = "off"
    #: whether policy rules are active
    governance_enabled: bool = True
