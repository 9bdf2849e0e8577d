"""Findings to a decision. The only place where it is made: requests, `/v1/scan`, evaluate and replay all ask here."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.detection.findings import Finding
from gatehouse.engine.dlp.steps import Steps, finish
from gatehouse.policy.dlp import STRENGTH, DlpPolicy, Rule

#: What is done about one hit. `allow`: a group's override lets it pass; it is noted all the same.
Effect: TypeAlias = Literal["allow", "log_only", "redact", "prompt", "block"]

#: A group's override as an effect (reference 2, Group DLP override).
_OVERRIDES: Final[dict[str, Effect]] = {"ALLOW": "allow", "REDACT": "redact", "BLOCK": "block"}

#: Of a finding in a text that cannot be changed, how many code points it has to have to count: of base64 fewer look
#: like an identifier by chance. None: its text can be changed.
MinLength: TypeAlias = Callable[[Finding], int | None]
MIN_SEALED_LENGTH: Final = 8
MIN_EXTRACT_LENGTH: Final = 1


class SplitValue(msgspec.Struct, frozen=True):
    """A pattern's finding whose value is in pieces: `finding` is where the first stands, `pieces` where each does, in
    order; `value` is what they are together."""

    finding: Finding
    pieces: tuple[tuple[int, int], ...]
    value: str


class TierFindings(NamedTuple):
    """What the three tiers found in one text."""

    patterns: Sequence[Finding] = ()
    entities: Sequence[Finding] = ()
    labels: Sequence[Finding] = ()


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A finding, the rule that speaks for it, and what it comes to for this caller. `split_values`: the finding is the first
    piece of this value."""

    finding: Finding
    rule: Rule
    effect: Effect
    split_value: SplitValue | None = None


class Edit(msgspec.Struct, frozen=True, gc=False):
    """A stretch of text that must not go on as it is: `hit` says why."""

    start: int
    end: int
    hit: Hit

    @property
    def split_text(self) -> str | None:
        """The value of which the stretch is a piece; None where it is no piece, or more than that."""
        split_value = self.hit.split_value
        return split_value.value if split_value is not None and (self.start, self.end) in split_value.pieces else None


class Decision(msgspec.Struct, frozen=True):
    """`hits` are all that counted, by their place; `edits` the stretches to redact, apart from each other, in order;
    `decisive` the hit that decides for the whole text: the first of the strongest effect, None where nothing hit."""

    hits: list[Hit]
    edits: list[Edit]
    decisive: Hit | None

    @property
    def effect(self) -> Effect:
        return self.decisive.effect if self.decisive is not None else "allow"


NO_HITS: Final = Decision([], [], None)


def decide(
    policy: DlpPolicy,
    found: TierFindings,
    groups: Iterable[UUID] = (),
    trace: list[str] | None = None,
    min_length: MinLength | None = None,
) -> Decision:
    """The strongest effect wins: block, redact, prompt, log only. Where redaction wins over a prompt, nobody is asked
    and what the prompt was about is redacted as well: it must not pass unseen. `trace` takes what was considered, in
    sentences without any of the text. In a text that cannot be changed, of which `shortest` knows, what would be
    redacted or asked about blocks.

    A finding within another one that is stronger (effect, score, length) is not counted: the digits of an IBAN are no
    card number. All rules that want the same finding count. Where stretches to redact overlap otherwise, all that any
    of them covers is redacted under the label of the strongest (effect, score, length, then the earlier one).
    """
    return finish(decide_in_steps(policy, found, groups, trace, min_length))


def decide_in_steps(
    policy: DlpPolicy,
    found: TierFindings,
    groups: Iterable[UUID] = (),
    trace: list[str] | None = None,
    min_length: MinLength | None = None,
    *,
    split_values: Sequence[SplitValue] = (),
) -> Steps[Decision]:
    """The same, a step for each finding. `split_values`: what patterns found over several texts."""
    hits: list[Hit] = []
    for findings, rules in (
        (found.patterns, policy.patterns),
        (found.entities, policy.entities),
        (found.labels, policy.labels),
    ):
        for finding in findings:
            yield
            hits += _hits(policy, finding, rules.get(finding.source, ()), groups, trace)
    for value in split_values:
        yield
        of_first = _hits(policy, value.finding, policy.patterns.get(value.finding.source, ()), groups, trace)
        hits += [msgspec.structs.replace(hit, split_value=value) for hit in of_first]
    if min_length is not None:
        hits = list(_blocking(hits, min_length))
    if not hits:
        return NO_HITS
    hits = yield from _counted(hits)
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
        effect = _effect(policy, rule, finding.score, groups)
        if trace is not None:
            why = _why(policy, rule, finding.score, effect)
            trace.append(
                f"{rule.name}: {rule.entity_type} at {finding.start} to {finding.end}, score {finding.score:.2f}:"
                f" {effect}{why}"
            )
        yield Hit(finding, rule, effect)


def _blocking(hits: Iterable[Hit], min_length: MinLength) -> Iterator[Hit]:
    """Without those that are too short to be more than chance."""
    for hit in hits:
        least = min_length(hit.finding)
        if least is None:
            yield hit
        elif hit.finding.end - hit.finding.start >= least:
            yield msgspec.structs.replace(hit, effect="block") if hit.effect in {"redact", "prompt"} else hit


def _why(policy: DlpPolicy, rule: Rule, score: float, effect: Effect) -> str:
    """What made another effect of the rule's action."""
    if effect == rule.action:
        return ""
    if score < rule.certain and effect == "log_only":
        return f" (its action is {rule.action} from a score of {rule.certain:.2f} on)"
    if rule.action == "prompt" and effect == "block" and not policy.asks:
        return " (its action is prompt, and human_in_loop is off)"
    return f" (its action is {rule.action}; a group's override)"


def _effect(policy: DlpPolicy, rule: Rule, score: float, groups: Iterable[UUID]) -> Effect:
    """With several groups the strictest override wins (decisions of the contract: DLP)."""
    strictest: Effect | None = None
    if policy.overrides:
        for group in groups:
            action = policy.overrides.get(group, {}).get(rule.entity_type)
            if action is not None:
                effect = _OVERRIDES[action]
                if strictest is None or STRENGTH[effect] > STRENGTH[strictest]:
                    strictest = effect
    effect = strictest or ("log_only" if score < rule.certain else rule.action)
    # With nobody to ask, what would be asked about is blocked (decisions of the contract: DLP, `human_in_loop`).
    return "block" if effect == "prompt" and not policy.asks else effect


def _counted(hits: list[Hit]) -> Steps[list[Hit]]:
    """By their place, without those that lie within a stronger one. What the semantic tier says is about whole texts,
    and counts in any case."""
    hits.sort(key=lambda hit: (hit.finding.start, -hit.finding.end, *(-part for part in _rank(hit))))
    counted: list[Hit] = []
    #: those that may still reach over what follows
    around: list[Hit] = []
    for hit in hits:
        yield
        finding = hit.finding
        if hit.rule.detector_type == "llm":
            # About the whole text: neither does it hide what lies within, nor the other way round.
            counted.append(hit)
            continue
        around = [other for other in around if other.finding.end > finding.start]
        if not any(_hides(other, hit) for other in around):
            counted.append(hit)
            around.append(hit)
    return counted


def _hides(other: Hit, hit: Hit) -> bool:
    """`other` begins no later. A value in pieces goes on where nothing else is found."""
    if hit.split_value is not None or other.finding is hit.finding:
        return False
    return other.finding.end >= hit.finding.end and _rank(other) > _rank(hit)


def _edits(hits: list[Hit]) -> list[Edit]:
    """`hits` are sorted by start."""
    edits: list[Edit] = []
    for start, end, hit in _stretches(hits):
        last = edits[-1] if edits else None
        if last is not None and start < last.end:
            stronger = hit if _rank(hit) > _rank(last.hit) else last.hit
            edits[-1] = Edit(last.start, max(last.end, end), stronger)
        else:
            edits.append(Edit(start, end, hit))
    return edits


def _stretches(hits: Iterable[Hit]) -> list[tuple[int, int, Hit]]:
    """What is to be redacted, by where it begins. `hits` are sorted by start."""
    changing = [hit for hit in hits if STRENGTH[hit.effect] >= STRENGTH["prompt"]]
    stretches = [(hit.finding.start, hit.finding.end, hit) for hit in changing]
    if rest := [
        (*piece, hit) for hit in changing if hit.split_value is not None for piece in hit.split_value.pieces[1:]
    ]:
        stretches = sorted(stretches + rest, key=itemgetter(0))
    return stretches


def _rank(hit: Hit) -> tuple[int, float, int, int]:
    finding = hit.finding
    return STRENGTH[hit.effect], finding.score, finding.end - finding.start, -finding.start
