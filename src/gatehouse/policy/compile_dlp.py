"""Rules to what finds and decides: the DLP part of a snapshot."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeAlias

import msgspec

from gatehouse.detection import ciphers
from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.custom import Refused, custom_pattern
from gatehouse.detection.matcher import BadPattern, Matcher
from gatehouse.detection.models import ENTITIES
from gatehouse.detection.pattern import CERTAIN, Pattern
from gatehouse.policy.dlp import STRENGTH, DlpPolicy, Rule
from gatehouse.policy.governance import BundleRecord, DlpRuleRecord, GovernanceRecords

OwnRule: TypeAlias = tuple[DlpRuleRecord, Rule]


@cache
def built_in_matcher() -> Matcher:
    """The 76 patterns and all that searches for them need, compiled once a process and shared by all organizations."""
    matcher = Matcher(BUILT_IN)
    ciphers.looks_of((matcher,))
    return matcher


def platform_rule(pattern: Pattern) -> Rule:
    return Rule(
        id=pattern.id,
        name=pattern.name,
        detector_type="regex",
        entity_type=pattern.entity_type,
        action=pattern.action,
        threshold=pattern.threshold,
        certain=CERTAIN,
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
    asks = flags.get("human_in_loop", False)
    demanded = _demanded(records.bundles)
    own_rules = [(record, _in_force(_rule(record), demanded, asks=asks)) for record in records.dlp_rules]
    entities = _entities(own_rules)
    policy = DlpPolicy(
        enabled=True,
        asks=asks,
        blocks_unreadable=flags.get("block_unreadable", False),
        matchers=tuple(matchers),
        own_patterns=own,
        patterns=_patterns(
            own_rules,
            demanded,
            records.suppressions,
            asks=asks,
            credentials=flags.get("credential_intelligence", True),
        ),
        entities=entities,
        open_labels=open_labels(entities),
        labels=_labels(own_rules),
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


def _patterns(
    own_rules: Iterable[OwnRule],
    demanded: frozenset[str],
    suppressions: frozenset[str],
    *,
    asks: bool,
    credentials: bool,
) -> dict[str, tuple[Rule, ...]]:
    """A rule without a pattern takes the place of the platform's rules for its entity type; a bundle puts its entity
    types (`demanded`) in force with at least redact, suppressed or not. Without `credentials` (feature flag
    `credential_intelligence`) the platform looks for no secrets of its own accord."""
    instead: dict[str, list[Rule]] = defaultdict(list)
    rules: dict[str, tuple[Rule, ...]] = {}
    for record, rule in own_rules:
        if record.detector_type == "regex":
            if record.pattern:
                rules[record.id] = (rule,)
            else:
                instead[record.entity_type].append(rule)
    for pattern in BUILT_IN:
        entity = pattern.entity_type
        if pattern.id in suppressions and entity not in demanded:
            continue
        if pattern.category == "secret" and not credentials and entity not in demanded and entity not in instead:
            continue
        chosen = instead.get(entity) or [platform_rule(pattern)]
        rules[pattern.id] = tuple(_in_force(rule, demanded, asks=asks) for rule in chosen)
    return rules


def _demanded(bundles: Iterable[BundleRecord]) -> frozenset[str]:
    return frozenset(entity for bundle in bundles for entity in bundle.entity_types)


def _in_force(rule: Rule, demanded: frozenset[str], *, asks: bool) -> Rule:
    """What a bundle demands is redacted at least, whichever rule finds it."""
    if rule.entity_type not in demanded:
        return rule
    rule = msgspec.structs.replace(rule, certain=0.0)
    if STRENGTH[rule.action] >= STRENGTH["redact"]:
        return rule
    # With nobody to ask, a prompt blocks.
    return rule if rule.action == "prompt" and not asks else msgspec.structs.replace(rule, action="redact")


def _entities(own_rules: Iterable[OwnRule]) -> dict[str, tuple[Rule, ...]]:
    """By the recogniser's name; what it finds is shown as the rule's entity type."""
    wanted: dict[str, list[Rule]] = defaultdict(list)
    for record, rule in own_rules:
        if record.detector_type == "ner":
            for name in record.entities or ENTITIES:
                wanted[name].append(rule)
    return {name: tuple(rules) for name, rules in wanted.items()}


def open_labels(entities: Iterable[str]) -> tuple[str, ...]:
    """Sorted: policies with the same labels share the tier's answers."""
    return tuple(sorted(set(entities) - set(ENTITIES)))


def _labels(own_rules: Iterable[OwnRule]) -> dict[str, tuple[Rule, ...]]:
    """A label counts from the rule's own threshold for labels on."""
    wanted: dict[str, list[Rule]] = defaultdict(list)
    for record, rule in own_rules:
        if record.detector_type == "llm":
            for label in record.labels:
                wanted[label].append(msgspec.structs.replace(rule, threshold=record.label_threshold))
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
