"""The compiled DLP policy of an organization: matchers, and the rules of each finding."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import ActionTier, Pattern
from gatehouse.policy.governance import DetectorType, GovernanceRecords, OverrideAction

#: The strongest action wins when several rules match (docs/dlp.md): block, then redact, then prompt, then
#: log_only.
DLP_ACTION_STRENGTH: Final[Mapping[str, int]] = {"allow": 0, "log_only": 1, "prompt": 2, "redact": 3, "block": 4}


class CompiledDlpRule(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The action for a finding. `source` is `platform` for the built-in patterns, else `organization`. A finding
    counts with a score of at least `threshold`; below `certain` it is only logged, unless a group's override sets
    its action."""

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
    """`patterns` maps a pattern's id, `entities` a recogniser's entity name and `labels` a semantic label to rules.
    `matchers` are the built-in one, shared by all organizations, and the organization's own."""

    enabled: bool
    #: whether a person decides about `prompt` (feature flag `human_in_loop`); otherwise it blocks
    asks: bool = False
    #: whether unreadable content is blocked (feature flag `block_unreadable`), whatever the installation's setting is
    blocks_unreadable: bool = False
    matchers: tuple[Matcher, ...] = ()
    own_patterns: tuple[Pattern, ...] = ()
    patterns: Mapping[str, tuple[CompiledDlpRule, ...]] = {}
    entities: Mapping[str, tuple[CompiledDlpRule, ...]] = {}
    #: those of `entities` that not every model of the entities tier recognises
    open_labels: tuple[str, ...] = ()
    labels: Mapping[str, tuple[CompiledDlpRule, ...]] = {}
    overrides: Mapping[UUID, Mapping[str, OverrideAction]] = {}
    suppressed: frozenset[str] = frozenset()
    custom_patterns: tuple[str, ...] = ()
    #: the records it was compiled from: a replay compiles them again with a draft
    records: GovernanceRecords = GovernanceRecords()
