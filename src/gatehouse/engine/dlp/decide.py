"""Findings to a decision. The only place where it is made: requests, `/v1/scan`, evaluate and replay all ask here."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.detection.findings import Finding
from gatehouse.policy.dlp import STRENGTH, DlpPolicy, Rule

#: What is done about one hit. `allow`: a group's override lets it pass; it is noted all the same.
Effect: TypeAlias = Literal["allow", "log_only", "redact", "prompt", "block"]

#: A group's override as an effect (reference 2, Group DLP override).
_OVERRIDES: Final[dict[str, Effect]] = {"ALLOW": "allow", "REDACT": "redact", "BLOCK": "block"}


class Found(NamedTuple):
    """What the three tiers found in one text."""

    patterns: Sequence[Finding] = ()
    entities: Sequence[Finding] = ()
    labels: Sequence[Finding] = ()


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A finding, the rule that speaks for it, and what it comes to for this caller."""

    finding: Finding
    rule: Rule
    effect: Effect


class Edit(msgspec.Struct, frozen=True, gc=False):
    """A stretch of text that must not go on as it is: `hit` says why."""

    start: int
    end: int
    hit: Hit


class Decision(msgspec.Struct, frozen=True):
    """`hits` are all that counted, by their place; `edits` the stretches to redact, apart from each other, in order;
    `decisive` the hit that decides for the whole text: the first of the strongest effect, None where nothing hit."""

    hits: list[Hit]
    edits: list[Edit]
    decisive: Hit | None

    @property
    def effect(self) -> Effect:
        return self.decisive.effect if self.decisive is not None else "allow"


NOTHING: Final = Decision([], [], None)


def decide(policy: DlpPolicy, found: Found, groups: Iterable[UUID] = (), trace: list[str] | None = None) -> Decision:
    """The strongest effect wins: block, redact, prompt, log only. Where redaction wins over a prompt, nobody is asked
    and what the prompt was about is redacted as well: it must not pass unseen. `trace` takes what was considered, in
    sentences without any of the text.

    A finding within another one that is at least as strong (effect, score, length) is not counted: the digits of an
    IBAN are no card number. Where stretches to redact overlap otherwise, all that any of them covers is redacted under
    the label of the strongest (effect, score, length, then the earlier one).
    """
    hits = [
        hit
        for findings, rules in (
            (found.patterns, policy.patterns),
            (found.entities, policy.entities),
            (found.labels, policy.labels),
        )
        for finding in findings
        for hit in _hits(policy, finding, rules.get(finding.source, ()), groups, trace)
    ]
    if not hits:
        return NOTHING
    hits = _counted(hits)
    decisive = max(hits, key=lambda hit: STRENGTH[hit.effect])
    return Decision(hits, _edits(hits), decisive)


def _hits(
    policy: DlpPolicy, finding: Finding, rules: Sequence[Rule], groups: Iterable[UUID], trace: list[str] | None
) -> Iterable[Hit]:
    for rule in rules:
        if finding.score < rule.threshold:
            if trace is not None:
                trace.append(f"{rule.name}: score {finding.score:.2f} is below its threshold {rule.threshold:.2f}")
            continue
        effect = _effect(policy, rule, groups)
        if trace is not None:
            why = _why(policy, rule, effect)
            trace.append(
                f"{rule.name}: {rule.entity_type} at {finding.start} to {finding.end}, score {finding.score:.2f}:"
                f" {effect}{why}"
            )
        yield Hit(finding, rule, effect)


def _why(policy: DlpPolicy, rule: Rule, effect: Effect) -> str:
    """What made another effect of the rule's action."""
    if effect == rule.action:
        return ""
    if rule.action == "prompt" and effect == "block" and not policy.asks:
        return " (its action is prompt, and human_in_loop is off)"
    return f" (its action is {rule.action}; a group's override)"


def _effect(policy: DlpPolicy, rule: Rule, groups: Iterable[UUID]) -> Effect:
    """With several groups the strictest override wins (decisions of the contract: DLP)."""
    strictest: Effect | None = None
    if policy.overrides:
        for group in groups:
            action = policy.overrides.get(group, {}).get(rule.entity_type)
            if action is not None:
                effect = _OVERRIDES[action]
                if strictest is None or STRENGTH[effect] > STRENGTH[strictest]:
                    strictest = effect
    effect = strictest or rule.action
    # With nobody to ask, what would be asked about is blocked (decisions of the contract: DLP, `human_in_loop`).
    return "block" if effect == "prompt" and not policy.asks else effect


def _counted(hits: list[Hit]) -> list[Hit]:
    """By their place, without those that lie within a stronger one. What the semantic tier says is about whole texts,
    and counts in any case."""
    hits.sort(key=lambda hit: (hit.finding.start, -hit.finding.end, *(-part for part in _rank(hit))))
    counted: list[Hit] = []
    #: those that may still reach over what follows
    around: list[Hit] = []
    for hit in hits:
        finding = hit.finding
        if hit.rule.detector_type == "llm":
            # About the whole text: neither does it hide what lies within, nor the other way round.
            counted.append(hit)
            continue
        around = [other for other in around if other.finding.end > finding.start]
        if not any(other.finding.end >= finding.end and _rank(other) > _rank(hit) for other in around):
            counted.append(hit)
            around.append(hit)
    return counted


def _edits(hits: list[Hit]) -> list[Edit]:
    """`hits` are sorted by start."""
    edits: list[Edit] = []
    for hit in hits:
        if STRENGTH[hit.effect] < STRENGTH["prompt"]:
            continue
        finding = hit.finding
        last = edits[-1] if edits else None
        if last is not None and finding.start < last.end:
            stronger = hit if _rank(hit) > _rank(last.hit) else last.hit
            edits[-1] = Edit(last.start, max(last.end, finding.end), stronger)
        else:
            edits.append(Edit(finding.start, finding.end, hit))
    return edits


def _rank(hit: Hit) -> tuple[int, float, int, int]:
    finding = hit.finding
    return STRENGTH[hit.effect], finding.score, finding.end - finding.start, -finding.start
