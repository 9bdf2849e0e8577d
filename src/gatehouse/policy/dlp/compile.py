"""Compiles DLP records to the DLP part of a snapshot."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeAlias

import msgspec

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.custom import PatternRefused, custom_pattern
from gatehouse.detection.matcher import BadPattern, Matcher
from gatehouse.detection.models import ENTITIES
from gatehouse.detection.pattern import CERTAIN_SCORE, Pattern
from gatehouse.detection.scanning import ciphers
from gatehouse.policy.dlp.compiled import DLP_ACTION_STRENGTH, CompiledDlpRule, DlpPolicy
from gatehouse.policy.governance import BundleRecord, DlpRuleRecord, GovernanceRecords

OwnRule: TypeAlias = tuple[DlpRuleRecord, CompiledDlpRule]


@cache
def built_in_matcher() -> Matcher:
    """Return the matcher of the built-in patterns. It is compiled once in each process, and all organizations use
    it."""
    matcher = Matcher(BUILT_IN)
    ciphers.place_searches((matcher,))
    return matcher


def platform_rule(pattern: Pattern) -> CompiledDlpRule:
    return CompiledDlpRule(
        id=pattern.id,
        name=pattern.name,
        detector_type="regex",
        entity_type=pattern.entity_type,
        action=pattern.action,
        threshold=pattern.threshold,
        certain=CERTAIN_SCORE,
        source="platform",
    )


def compile_dlp(
    records: GovernanceRecords, flags: dict[str, bool], before: DlpPolicy | None = None
) -> tuple[DlpPolicy, list[str]]:
    """Return the policy, and the faults in the records. `before` is the organization's previous policy. The
    organization's own patterns are compiled again only if they differ from those of `before`."""
    if not flags.get("dlp_enabled", True):
        return DlpPolicy(enabled=False, records=records), []
    faults: list[str] = []
    own = tuple(_own_patterns(records.dlp_rules, faults))
    matchers = [built_in_matcher()]
    if own:
        unchanged = before is not None and before.own_patterns == own
        try:
            matchers.append(before.matchers[1] if unchanged and before is not None else Matcher(own))
        except BadPattern as error:
            faults.append(f"a pattern of the organization's own does not compile: {error}")
    asks = flags.get("human_in_loop", False)
    required = _required_entities(records.bundles)
    own_rules = [(record, _strengthened(_rule(record), required, asks=asks)) for record in records.dlp_rules]
    entities = _entities(own_rules)
    policy = DlpPolicy(
        enabled=True,
        asks=asks,
        blocks_unreadable=flags.get("block_unreadable", False),
        matchers=tuple(matchers),
        own_patterns=own,
        patterns=_patterns(
            own_rules,
            required,
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
            except PatternRefused as error:
                faults.append(f"a pattern of the organization's own cannot be used: {error}")


def _patterns(
    own_rules: Iterable[OwnRule],
    required: frozenset[str],
    suppressions: frozenset[str],
    *,
    asks: bool,
    credentials: bool,
) -> dict[str, tuple[CompiledDlpRule, ...]]:
    """Return the active rules, by the id of the pattern.

    A rule without a pattern replaces the platform's rules for its entity type. `required` are the entity types of
    compliance bundles. Their rules are active even if they are suppressed, with at least the action redact. If
    `credentials` (the feature flag `credential_intelligence`) is false, the platform's patterns for secrets are not
    active."""
    replacements: dict[str, list[CompiledDlpRule]] = defaultdict(list)
    rules: dict[str, tuple[CompiledDlpRule, ...]] = {}
    for record, rule in own_rules:
        if record.detector_type == "regex":
            if record.pattern:
                rules[record.id] = (rule,)
            else:
                replacements[record.entity_type].append(rule)
    for pattern in BUILT_IN:
        entity = pattern.entity_type
        if pattern.id in suppressions and entity not in required:
            continue
        if pattern.category == "secret" and not credentials and entity not in required and entity not in replacements:
            continue
        replacing_rules = replacements.get(entity) or [platform_rule(pattern)]
        rules[pattern.id] = tuple(_strengthened(rule, required, asks=asks) for rule in replacing_rules)
    return rules


def _required_entities(bundles: Iterable[BundleRecord]) -> frozenset[str]:
    return frozenset(entity for bundle in bundles for entity in bundle.entity_types)


def _strengthened(rule: CompiledDlpRule, required: frozenset[str], *, asks: bool) -> CompiledDlpRule:
    """Return the rule, with at least the action redact if a compliance bundle requires its entity type."""
    if rule.entity_type not in required:
        return rule
    rule = msgspec.structs.replace(rule, certain=0.0)
    if DLP_ACTION_STRENGTH[rule.action] >= DLP_ACTION_STRENGTH["redact"]:
        return rule
    # Without approvals, the action prompt blocks, which is stronger than redact.
    return rule if rule.action == "prompt" and not asks else msgspec.structs.replace(rule, action="redact")


def _entities(own_rules: Iterable[OwnRule]) -> dict[str, tuple[CompiledDlpRule, ...]]:
    """Return the rules by the entity name of the recogniser. Findings are reported with the entity type of the rule."""
    by_name: dict[str, list[CompiledDlpRule]] = defaultdict(list)
    for record, rule in own_rules:
        if record.detector_type == "ner":
            for name in record.entities or ENTITIES:
                by_name[name].append(rule)
    return {name: tuple(rules) for name, rules in by_name.items()}


def open_labels(entities: Iterable[str]) -> tuple[str, ...]:
    """Return the entity names that not every model recognises. They are sorted, so that policies with the same names
    use the same cached results."""
    return tuple(sorted(set(entities) - set(ENTITIES)))


def _labels(own_rules: Iterable[OwnRule]) -> dict[str, tuple[CompiledDlpRule, ...]]:
    """Return the rules by label. The threshold of each rule is its threshold for labels."""
    by_label: dict[str, list[CompiledDlpRule]] = defaultdict(list)
    for record, rule in own_rules:
        if record.detector_type == "llm":
            for label in record.labels:
                by_label[label].append(msgspec.structs.replace(rule, threshold=record.label_threshold))
    return {label: tuple(rules) for label, rules in by_label.items()}


def _rule(record: DlpRuleRecord) -> CompiledDlpRule:
    return CompiledDlpRule(
        id=record.id,
        name=record.name,
        detector_type=record.detector_type,
        entity_type=record.entity_type,
        action=record.action,
        threshold=record.threshold,
        source="organization",
        reversible=record.reversible,
    )
