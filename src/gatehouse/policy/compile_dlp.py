"""Rules to what finds and decides: the DLP part of a snapshot."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import msgspec

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.custom import Refused, custom_pattern
from gatehouse.detection.matcher import BadPattern, Matcher
from gatehouse.detection.models import ENTITIES
from gatehouse.detection.pattern import Pattern
from gatehouse.policy.dlp import STRENGTH, DlpPolicy, Rule
from gatehouse.policy.governance import BundleRecord, DlpRuleRecord, GovernanceRecords

_BY_ENTITY: Final[dict[str, list[Pattern]]] = defaultdict(list)
for _pattern in BUILT_IN:
    _BY_ENTITY[_pattern.entity_type].append(_pattern)


@cache
def built_in_matcher() -> Matcher:
    """The 76 patterns, compiled once a process and shared by all organizations."""
    return Matcher(BUILT_IN)


def platform_rule(pattern: Pattern) -> Rule:
    return Rule(
        id=pattern.id,
        name=pattern.name,
        detector_type="regex",
        entity_type=pattern.entity_type,
        action=pattern.action,
        threshold=pattern.threshold,
        source="platform",
    )


def compile_dlp(
    records: GovernanceRecords, flags: dict[str, bool], before: DlpPolicy | None = None
) -> tuple[DlpPolicy, list[str]]:
    """The policy, and what is wrong with the records. `before` is the organization's policy until now: its own
    patterns are compiled again only if they changed."""
    if not flags.get("dlp_enabled", True):
        return DlpPolicy(enabled=False, records=records), []
    faults: list[str] = []
    own = tuple(_own_patterns(records.dlp_rules, faults))
    matchers = [built_in_matcher()]
    if own:
        same = before is not None and before.own_patterns == own
        try:
            matchers.append(before.matchers[1] if same and before is not None else Matcher(own))
        except BadPattern as error:
            faults.append(f"a pattern of the organization's own does not compile: {error}")
    policy = DlpPolicy(
        enabled=True,
        asks=flags.get("human_in_loop", False),
        matchers=tuple(matchers),
        own_patterns=own,
        patterns=_patterns(records, credentials=flags.get("credential_intelligence", True)),
        entities=_entities(records.dlp_rules),
        labels=_labels(records.dlp_rules),
        overrides=records.overrides,
        suppressed=records.suppressions,
        custom_patterns=tuple(rule.name for rule in records.dlp_rules if rule.custom),
        records=records,
    )
    return policy, faults


def _own_patterns(records: Iterable[DlpRuleRecord], faults: list[str]) -> Iterator[Pattern]:
    for rule in records:
        if rule.detector_type == "regex" and rule.pattern:
            try:
                yield custom_pattern(
                    rule.id,
                    rule.name,
                    rule.entity_type,
                    rule.pattern,
                    context=rule.context,
                    action=rule.action,
                    threshold=rule.threshold,
                )
            except Refused as refused:
                faults.append(f"a pattern of the organization's own cannot be used: {refused}")


def _patterns(records: GovernanceRecords, *, credentials: bool) -> dict[str, tuple[Rule, ...]]:
    """A rule without a pattern takes the place of the platform's rules for its entity type; a bundle puts its entity
    types in force with at least redact, suppressed or not. Without `credentials` (feature flag
    `credential_intelligence`) the platform looks for no secrets of its own accord."""
    instead: dict[str, list[Rule]] = defaultdict(list)
    rules: dict[str, tuple[Rule, ...]] = {}
    for record in records.dlp_rules:
        if record.detector_type == "regex":
            rule = _rule(record)
            if record.pattern:
                rules[record.id] = (rule,)
            else:
                instead[record.entity_type].append(rule)
    demanded = _demanded(records.bundles)
    for pattern in BUILT_IN:
        entity = pattern.entity_type
        if pattern.id in records.suppressions and entity not in demanded:
            continue
        if pattern.category == "secret" and not credentials and entity not in demanded and entity not in instead:
            continue
        chosen = instead.get(entity) or [platform_rule(pattern)]
        if entity in demanded:
            chosen = [_at_least_redact(rule) for rule in chosen]
        rules[pattern.id] = tuple(chosen)
    return rules


def _demanded(bundles: Iterable[BundleRecord]) -> frozenset[str]:
    return frozenset(entity for bundle in bundles for entity in bundle.entity_types)


def _at_least_redact(rule: Rule) -> Rule:
    weaker = STRENGTH[rule.action] < STRENGTH["redact"]
    return msgspec.structs.replace(rule, action="redact") if weaker else rule


def _entities(records: Iterable[DlpRuleRecord]) -> dict[str, tuple[Rule, ...]]:
    wanted: dict[str, list[Rule]] = defaultdict(list)
    for record in records:
        if record.detector_type == "ner":
            for name in record.entities or ENTITIES:
                wanted[name].append(msgspec.structs.replace(_rule(record), entity_type=name))
    return {name: tuple(rules) for name, rules in wanted.items()}


def _labels(records: Iterable[DlpRuleRecord]) -> dict[str, tuple[Rule, ...]]:
    """A label counts from the rule's own threshold for labels on."""
    wanted: dict[str, list[Rule]] = defaultdict(list)
    for record in records:
        if record.detector_type == "llm":
            for label in record.labels:
                wanted[label].append(msgspec.structs.replace(_rule(record), threshold=record.label_threshold))
    return {label: tuple(rules) for label, rules in wanted.items()}


def _rule(record: DlpRuleRecord) -> Rule:
    return Rule(
        id=record.id,
        name=record.name,
        detector_type=record.detector_type,
        entity_type=record.entity_type,
        action=record.action,
        threshold=record.threshold,
        source="organization",
        reversible=record.reversible,
    )
