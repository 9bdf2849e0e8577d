"""What one request was found to hold: decided piece by piece, noted for its record, never with the matched text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.detection.documents.output import Unread
from gatehouse.engine.dlp.decide import (
    Decision,
    Edit,
    Hit,
    MinLength,
    SplitValue,
    TierFindings,
    decide,
    decide_in_steps,
)
from gatehouse.engine.dlp.labels import NO_LABEL_NUMBERS, Labels
from gatehouse.engine.dlp.steps import Steps, finish
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.dlp.turns import NO_OWNER, Owner, WorkBudget
from gatehouse.engine.outcome import DlpEvent
from gatehouse.policy.dlp import DlpPolicy

#: Severity by what was done (decisions of the contract: compliance).
SEVERITY: Final = {"block": "critical", "prompt": "high", "redact": "medium", "log_only": "low", "allow": "low"}
#: What has a budget of its own: searching texts for patterns, and all that is done around it. What was found is decided
#: about, and with `DLP_FAIL_MODE=open` redacted, also where the search for more was given up.
Work: TypeAlias = Literal["searching", "around"]
_STATUS: Final = {
    "block": "blocked",
    "prompt": "pending",
    "redact": "redacted",
    "log_only": "logged",
    "allow": "logged",
}
#: What a caller is told was done (header `X-DLP-Action`), weakest first.
_ACTIONS: Final = ("ALLOW", "PROMPT", "REDACT", "CANCEL", "BLOCK")


class Replacement(msgspec.Struct, frozen=True, gc=False):
    start: int
    end: int
    text: str


class Inspection:
    """One request's, for its input and its output. `seconds` is the time that inspecting took, `numbers` what labels
    are numbered after, `owner` whose turn long texts wait for."""

    __slots__ = ("_budgets", "_groups", "_notes", "action", "labels", "owner", "policy", "seconds")

    def __init__(
        self,
        policy: DlpPolicy,
        groups: Iterable[UUID] = (),
        *,
        numbers: Mapping[str, int] = NO_LABEL_NUMBERS,
        owner: Owner = NO_OWNER,
    ) -> None:
        self.policy = policy
        self.owner = owner
        self._budgets: dict[tuple[str, Work], WorkBudget] = {}
        self.labels = Labels(numbers)
        self.action = "ALLOW"
        self.seconds = 0.0
        self._groups = tuple(groups)
        self._notes: dict[tuple[str, str, str, str], DlpEvent] = {}

    def budget(self, options: DlpOptions, direction: str, work: Work) -> WorkBudget:
        """What the pattern tier may still take for work of a kind on this request, or on its answer."""
        budget = self._budgets.get((direction, work))
        if budget is None:
            budget = self._budgets[direction, work] = WorkBudget(
                work_seconds=options.pattern_work_seconds, timeout_seconds=options.pattern_timeout_seconds
            )
        return budget

    def decide(self, found: TierFindings, direction: str, min_length: MinLength | None = None) -> Decision:
        """Decides and notes. `direction` is `input` or `output`, `shortest` as in `decide`."""
        return finish(self.decide_in_steps(found, direction, min_length))

    def decide_in_steps(
        self,
        found: TierFindings,
        direction: str,
        min_length: MinLength | None = None,
        split_values: Sequence[SplitValue] = (),
    ) -> Steps[Decision]:
        """The same, a step for each finding. `split_values`: what patterns found over several texts."""
        decision = yield from decide_in_steps(
            self.policy, found, self._groups, min_length=min_length, split_values=split_values
        )
        for hit in decision.hits:
            yield
            effect = hit.effect
            if effect == "prompt" and decision.effect in {"redact", "block"}:
                effect = decision.effect
            self._note(hit, _STATUS[effect], effect, direction)
        return decision

    def note_late(self, found: TierFindings, direction: str) -> None:
        """What was found in a text that has gone on already: all that is left is to say so."""
        for hit in decide(self.policy, found, self._groups).hits:
            self._note(hit, "logged", "log_only", direction)

    def replacements(
        self, edits: Sequence[Edit], text: str, offset: int = 0, *, direction: str = "input"
    ) -> list[Replacement]:
        """Labels for the edits. `text` begins at `offset` of the text that the edits count in."""
        if edits:
            self.note_action("REDACT")
        return [Replacement(edit.start, edit.end, self._label(edit, text, offset, direction)) for edit in edits]

    def _label(self, edit: Edit, text: str, offset: int, direction: str) -> str:
        rule = edit.hit.rule
        value = edit.split_text or text[edit.start - offset : edit.end - offset]
        # Turned back is what the caller said: nobody is told by a label what an answer was not to tell.
        return self.labels.label_for(rule.entity_type, value, reversible=rule.reversible and direction == "input")

    def note_action(self, action: str) -> None:
        """Remembers the strongest of what was done."""
        if _ACTIONS.index(action) > _ACTIONS.index(self.action):
            self.action = action

    def settle_prompts(self, status: str) -> None:
        """What became of what was pending: `approved` or `cancelled`."""
        for key, note in list(self._notes.items()):
            if note.status == "pending":
                del self._notes[key]
                self._notes[(*key[:2], status, *key[3:])] = msgspec.structs.replace(note, status=status)

    def note_unread(self, unread: Unread, *, blocked: bool, direction: str, count: int = 1) -> None:
        """Something that no tier can read, so many times."""
        why = f"unreadable content: {unread.reason}"
        self._note_unread(why, None, unread.kind, blocked=blocked, direction=direction, count=count)

    def note_failure(self, tier: str, reason: str, *, blocked: bool, direction: str) -> None:
        """A tier that gave no answer."""
        self._note_unread(f"{tier}: {reason}", tier, "tier_failure", blocked=blocked, direction=direction)

    def _note_unread(
        self, why: str, tier: str | None, entity_type: str, *, blocked: bool, direction: str, count: int = 1
    ) -> None:
        action = "block" if blocked else "log_only"
        self._add(
            DlpEvent(
                rule_id=None,
                rule_name=why,
                detector_type=tier,
                entity_type=entity_type,
                direction=direction,
                status=_STATUS[action],
                action=action,
                severity=SEVERITY[action],
                source="platform",
                score=None,
                match_count=count,
            )
        )

    def events(self) -> tuple[DlpEvent, ...]:
        return tuple(self._notes.values())

    def _note(self, hit: Hit, status: str, effect: str, direction: str) -> None:
        rule = hit.rule
        self._add(
            DlpEvent(
                rule_id=rule.id,
                rule_name=rule.name,
                detector_type=rule.detector_type,
                entity_type=rule.entity_type,
                direction=direction,
                status=status,
                action=effect,
                severity=SEVERITY[effect],
                source=rule.source,
                score=round(hit.finding.score, 4),
                match_count=1,
            )
        )

    def _add(self, event: DlpEvent) -> None:
        """One event a rule and direction, with how often and the highest score."""
        key = (event.rule_id or event.rule_name, event.direction, event.status, event.entity_type)
        noted = self._notes.get(key)
        if noted is not None:
            scores = [score for score in (noted.score, event.score) if score is not None]
            event = msgspec.structs.replace(
                event, match_count=noted.match_count + event.match_count, score=max(scores) if scores else None
            )
        self._notes[key] = event
