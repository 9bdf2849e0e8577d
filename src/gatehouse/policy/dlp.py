"""The compiled DLP policy of an organization: which rule speaks for which finding, and what finds them."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import ActionTier, Pattern
from gatehouse.policy.governance import DetectorType, GovernanceRecords, OverrideAction

#: Which action wins when several rules match (reference 3, DLP rule): block, then redact, then prompt, then log_only.
STRENGTH: Final[Mapping[str, int]] = {"allow": 0, "log_only": 1, "prompt": 2, "redact": 3, "block": 4}


class Rule(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is done about a finding. `source` is `platform` for the built-in patterns, else `organization`. A finding
    counts with a score of at least `threshold`; below `certain` it is only logged, unless a group's override says what
    is done."""

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
    """`patterns` maps a pattern's id, `entities` a recogniser's name and `labels` a semantic label to the rules that
    want it. `matchers` are the built-in ones, shared by all organizations, and the organization's own."""

    enabled: bool
    #: whether a person decides about `prompt` (feature flag `human_in_loop`); otherwise it blocks
    asks: bool = False
    #: whether what no tier can read is blocked (feature flag `block_unreadable`), whatever the installation says
    blocks_unreadable: bool = False
    matchers: tuple[Matcher, ...] = ()
    own_patterns: tuple[Pattern, ...] = ()
    patterns: Mapping[str, tuple[Rule, ...]] = {}
    entities: Mapping[str, tuple[Rule, ...]] = {}
    #: those of `entities` that not every model of the entities tier recognises
    open_labels: tuple[str, ...] = ()
    labels: Mapping[str, tuple[Rule, ...]] = {}
    overrides: Mapping[UUID, Mapping[str, OverrideAction]] = {}
    suppressed: frozenset[str] = frozenset()
    custom_patterns: tuple[str, ...] = ()
    #: what it was compiled from: a replay compiles the same with a draft in it
    records: GovernanceRecords = GovernanceRecords()
