"""Decides about findings. Requests, answers, `/v1/scan`, evaluation and replay all use the decision made here."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.detection.findings import Finding
from gatehouse.engine.dlp.steps import Steps, finish
from gatehouse.policy.dlp.compiled import DLP_ACTION_STRENGTH, CompiledDlpRule, DlpPolicy

#: The effect of one hit. With `allow`, a group's override lets the content pass, and the hit is still recorded.
Effect: TypeAlias = Literal["allow", "log_only", "redact", "prompt", "block"]

#: The effects of group overrides (docs/groups.md).
_OVERRIDES: Final[dict[str, Effect]] = {"ALLOW": "allow", "REDACT": "redact", "BLOCK": "block"}

#: Returns the minimum length in code points of a finding that counts in a text that cannot be changed. Shorter base64
#: strings resemble identifiers by chance. Returns None if the finding's text can be changed.
MinLength: TypeAlias = Callable[[Finding], int | None]
MIN_SEALED_CHARACTERS: Final = 8
MIN_EXTRACT_CHARACTERS: Final = 1


class SplitValue(msgspec.Struct, frozen=True):
    """A value that a pattern matches in several pieces. `finding` covers the first piece, `pieces` are the start and
    end of all pieces in order, and `value` is the concatenated pieces."""

    finding: Finding
    pieces: tuple[tuple[int, int], ...]
    value: str


class TierFindings(NamedTuple):
    """The findings of the three tiers in one text."""

    patterns: Sequence[Finding] = ()
    entities: Sequence[Finding] = ()
    labels: Sequence[Finding] = ()


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A finding, a rule that applies to it, and the effect for this caller. `split_value` is set if the finding is the
    first piece of a split value."""

    finding: Finding
    rule: CompiledDlpRule
    effect: Effect
    split_value: SplitValue | None = None


class Edit(msgspec.Struct, frozen=True, gc=False):
    """A range of the text that must not be passed on unchanged, and the hit that requires the edit."""

    start: int
    end: int
    hit: Hit

    @property
    def split_text(self) -> str | None:
        """Return the complete value if the range is exactly one piece of a split value, else None."""
        split_value = self.hit.split_value
        return split_value.value if split_value is not None and (self.start, self.end) in split_value.pieces else None


class Decision(msgspec.Struct, frozen=True):
    """The decision about the findings of a text.

    `hits` are all hits that count, by position. `edits` are the ranges to redact, in order and without overlaps.
    `decisive` is the first hit with the strongest effect, which decides for the whole text. It is None if there are no
    hits."""

    hits: list[Hit]
    edits: list[Edit]
    decisive: Hit | None

    @property
    def effect(self) -> Effect:
        return self.decisive.effect if self.decisive is not None else "allow"


NO_HITS: Final = Decision([], [], None)


def decide(
    policy: DlpPolicy,
    findings: TierFindings,
    groups: Iterable[UUID] = (),
    trace: list[str] | None = None,
    min_length: MinLength | None = None,
) -> Decision:
    """Return the decision about the findings of a text (docs/dlp.md).

    The strongest effect wins, in this order: block, redact, prompt, log only. If redaction wins over a prompt, the
    match of the prompt is redacted too and no approval is requested. `trace` receives sentences about each rule
    considered, which contain nothing of the text. In a text that cannot be changed (`min_length`), a hit that would
    redact or prompt blocks.

    A finding inside a stronger finding is ignored, for example a card number inside an IBAN. Strength is compared
    by effect, then score, then length. All rules for the same finding count. If ranges to redact overlap in another
    way, their union is redacted under the label of the strongest hit; of equal hits, the earlier one.
    """
    return finish(decide_in_steps(policy, findings, groups, trace, min_length))


def decide_in_steps(
    policy: DlpPolicy,
    tier_findings: TierFindings,
    groups: Iterable[UUID] = (),
    trace: list[str] | None = None,
    min_length: MinLength | None = None,
    *,
    split_values: Sequence[SplitValue] = (),
) -> Steps[Decision]:
    """Decide as `decide` does, with a step for each finding. `split_values` are pattern matches that cross several
    texts."""
    hits: list[Hit] = []
    for findings, rules in (
        (tier_findings.patterns, policy.patterns),
        (tier_findings.entities, policy.entities),
        (tier_findings.labels, policy.labels),
    ):
        for finding in findings:
            yield
            hits += _hits(policy, finding, rules.get(finding.source, ()), groups, trace)
    for value in split_values:
        yield
        first_hits = _hits(policy, value.finding, policy.patterns.get(value.finding.source, ()), groups, trace)
        hits += [msgspec.structs.replace(hit, split_value=value) for hit in first_hits]
    if min_length is not None:
        hits = list(_blocking(hits, min_length))
    if not hits:
        return NO_HITS
    hits = yield from _drop_hidden(hits)
    decisive = max(hits, key=lambda hit: DLP_ACTION_STRENGTH[hit.effect])
    return Decision(hits, _edits(hits), decisive)


def _hits(
    policy: DlpPolicy,
    finding: Finding,
    rules: Sequence[CompiledDlpRule],
    groups: Iterable[UUID],
    trace: list[str] | None,
) -> Iterable[Hit]:
    for rule in rules:
        if finding.score < rule.threshold:
            if trace is not None:
                trace.append(f"{rule.name}: score {finding.score:.2f} is below its threshold {rule.threshold:.2f}")
            continue
        effect = _effect(policy, rule, finding.score, groups)
        if trace is not None:
            reason = _override_reason(policy, rule, finding.score, effect)
            trace.append(
                f"{rule.name}: {rule.entity_type} at {finding.start} to {finding.end}, score {finding.score:.2f}:"
                f" {effect}{reason}"
            )
        yield Hit(finding, rule, effect)


def _blocking(hits: Iterable[Hit], min_length: MinLength) -> Iterator[Hit]:
    """Yield the hits that are long enough to count. In a text that cannot be changed, hits that would redact or prompt
    block."""
    for hit in hits:
        least_length = min_length(hit.finding)
        if least_length is None:
            yield hit
        elif hit.finding.end - hit.finding.start >= least_length:
            yield msgspec.structs.replace(hit, effect="block") if hit.effect in {"redact", "prompt"} else hit


def _override_reason(policy: DlpPolicy, rule: CompiledDlpRule, score: float, effect: Effect) -> str:
    """Return a text that explains why the effect differs from the rule's action, or an empty string if it does not
    differ."""
    if effect == rule.action:
        return ""
    if score < rule.certain and effect == "log_only":
        return f" (its action is {rule.action} from a score of {rule.certain:.2f} on)"
    if rule.action == "prompt" and effect == "block" and not policy.asks:
        return " (its action is prompt, and human_in_loop is off)"
    return f" (its action is {rule.action}; a group's override)"


def _effect(policy: DlpPolicy, rule: CompiledDlpRule, score: float, groups: Iterable[UUID]) -> Effect:
    """Return the effect of a rule. With several groups the strictest override wins (docs/dlp.md)."""
    strictest: Effect | None = None
    if policy.overrides:
        for group in groups:
            action = policy.overrides.get(group, {}).get(rule.entity_type)
            if action is not None:
                effect = _OVERRIDES[action]
                if strictest is None or DLP_ACTION_STRENGTH[effect] > DLP_ACTION_STRENGTH[strictest]:
                    strictest = effect
    effect = strictest or ("log_only" if score < rule.certain else rule.action)
    # Without the feature flag `human_in_loop` a prompt blocks (docs/dlp.md).
    return "block" if effect == "prompt" and not policy.asks else effect


def _drop_hidden(hits: list[Hit]) -> Steps[list[Hit]]:
    """Return the hits sorted by position, without the hits that lie inside a stronger one. Hits of the semantic tier
    are about whole texts and always count."""
    hits.sort(key=lambda hit: (hit.finding.start, -hit.finding.end, *(-part for part in _rank(hit))))
    counted: list[Hit] = []
    #: hits that may still overlap one of the following hits
    open_hits: list[Hit] = []
    for hit in hits:
        yield
        finding = hit.finding
        if hit.rule.detector_type == "llm":
            # A hit of the semantic tier covers the whole text. It hides no other hit, and no other hit hides it.
            counted.append(hit)
            continue
        open_hits = [earlier for earlier in open_hits if earlier.finding.end > finding.start]
        if not any(_hides(earlier, hit) for earlier in open_hits):
            counted.append(hit)
            open_hits.append(hit)
    return counted


def _hides(earlier: Hit, hit: Hit) -> bool:
    """Return whether `earlier`, which does not begin after `hit`, hides `hit`. A split value is never hidden, because
    its other pieces lie in texts where nothing else matches."""
    if hit.split_value is not None or earlier.finding is hit.finding:
        return False
    return earlier.finding.end >= hit.finding.end and _rank(earlier) > _rank(hit)


def _edits(hits: list[Hit]) -> list[Edit]:
    """Return the ranges to redact, merged where they overlap. `hits` are sorted by start."""
    edits: list[Edit] = []
    for start, end, hit in _ranges_to_redact(hits):
        last = edits[-1] if edits else None
        if last is not None and start < last.end:
            stronger = hit if _rank(hit) > _rank(last.hit) else last.hit
            edits[-1] = Edit(last.start, max(last.end, end), stronger)
        else:
            edits.append(Edit(start, end, hit))
    return edits


def _ranges_to_redact(hits: Iterable[Hit]) -> list[tuple[int, int, Hit]]:
    """Return the start, end and hit of each range to redact, sorted by start. `hits` are sorted by start."""
    redacting = [hit for hit in hits if DLP_ACTION_STRENGTH[hit.effect] >= DLP_ACTION_STRENGTH["prompt"]]
    ranges = [(hit.finding.start, hit.finding.end, hit) for hit in redacting]
    if later_pieces := [
        (*piece, hit) for hit in redacting if hit.split_value is not None for piece in hit.split_value.pieces[1:]
    ]:
        ranges = sorted(ranges + later_pieces, key=itemgetter(0))
    return ranges


def _rank(hit: Hit) -> tuple[int, float, int, int]:
    finding = hit.finding
    return DLP_ACTION_STRENGTH[hit.effect], finding.score, finding.end - finding.start, -finding.start
