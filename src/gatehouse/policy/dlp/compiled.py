"""The compiled DLP policy of an organization: its matchers, and the rules that apply to each finding."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import ActionTier, Pattern
from gatehouse.policy.governance import DetectorType, GovernanceRecords, OverrideAction

#: The strength of each action. When several rules match, the strongest action is taken (docs/dlp.md).
DLP_ACTION_STRENGTH: Final[Mapping[str, int]] = {"allow": 0, "log_only": 1, "prompt": 2, "redact": 3, "block": 4}


class CompiledDlpRule(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The action for a finding. `source` is `platform` for the built-in patterns, otherwise `organization`. A finding
    counts if its score is at least `threshold`. If its score is below `certain`, it is only logged, unless an override
    of a group sets its action."""

    id: str
    name: str
    detector_type: DetectorType
    entity_type: str
    action: ActionTier
    threshold: float
    source: str
    certain: float = 0.0
    reversible: bool = False


class DlpPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled DLP policy. `patterns` maps ids of patterns to rules, `entities` maps entity names of the recogniser
    to rules, and `labels` maps semantic labels to rules. `matchers` has the built-in matcher, which all organizations
    use, and the organization's own matcher, if it has patterns."""

    enabled: bool
    #: whether a person decides about the action `prompt` (feature flag `human_in_loop`); otherwise `prompt` blocks
    asks: bool = False
    #: whether unreadable content is blocked (feature flag `block_unreadable`), regardless of the installation's setting
    blocks_unreadable: bool = False
    matchers: tuple[Matcher, ...] = ()
    own_patterns: tuple[Pattern, ...] = ()
    patterns: Mapping[str, tuple[CompiledDlpRule, ...]] = {}
    entities: Mapping[str, tuple[CompiledDlpRule, ...]] = {}
    #: the names in `entities` that not every model of the entities tier recognises
    open_labels: tuple[str, ...] = ()
    labels: Mapping[str, tuple[CompiledDlpRule, ...]] = {}
    overrides: Mapping[UUID, Mapping[str, OverrideAction]] = {}
    suppressed: frozenset[str] = frozenset()
    custom_patterns: tuple[str, ...] = ()
    #: the records that the policy was compiled from; a replay compiles them again with a draft
    records: GovernanceRecords = GovernanceRecords()
