"""The inspection of one request: decides about the findings of its texts, and collects events for the record without
the matched text."""

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
from gatehouse.engine.dlp.turns import NO_OWNER, WorkBudget, WorkOwner
from gatehouse.engine.records.outcome import DlpEvent
from gatehouse.policy.dlp.compiled import DlpPolicy

#: The severity of an event, by the effect of its hit (docs/compliance.md).
SEVERITY: Final = {"block": "critical", "prompt": "high", "redact": "medium", "log_only": "low", "allow": "low"}
#: The kinds of work that have a budget: the search of texts for patterns, and all other work. The separate budgets let
#: the gateway decide about findings and redact them with `DLP_FAIL_MODE=open` after the budget of the search is spent.
WorkKind: TypeAlias = Literal["search", "other"]
_STATUS: Final = {
    "block": "blocked",
    "prompt": "pending",
    "redact": "redacted",
    "log_only": "logged",
    "allow": "logged",
}
#: Values of the header `X-DLP-Action`, weakest first.
_ACTIONS: Final = ("ALLOW", "PROMPT", "REDACT", "CANCEL", "BLOCK")


class Replacement(msgspec.Struct, frozen=True, gc=False):
    """The text that replaces a range."""

    start: int
    end: int
    text: str


class Inspection:
    """The inspection of the input and output of one request. `action` is the strongest action so far, and None while
    nothing has been inspected. `seconds` is the time that the inspection took.
    `last_label_numbers` are the highest label numbers already used (`Labels`). `owner` is the owner of the inspection's
    long work (`turns`)."""

    __slots__ = ("_budgets", "_events", "_groups", "action", "labels", "owner", "policy", "seconds")

    def __init__(
        self,
        policy: DlpPolicy,
        groups: Iterable[UUID] = (),
        *,
        last_label_numbers: Mapping[str, int] = NO_LABEL_NUMBERS,
        owner: WorkOwner = NO_OWNER,
    ) -> None:
        self.policy = policy
        self.owner = owner
        self._budgets: dict[tuple[str, WorkKind], WorkBudget] = {}
        self.labels = Labels(last_label_numbers)
        self.action: str | None = None
        self.seconds = 0.0
        self._groups = tuple(groups)
        self._events: dict[tuple[str, str, str, str], DlpEvent] = {}

    def budget(self, options: DlpOptions, direction: str, kind: WorkKind) -> WorkBudget:
        """Return the remaining budget of the pattern tier for one kind of work on the request or on its answer."""
        budget = self._budgets.get((direction, kind))
        if budget is None:
            budget = self._budgets[direction, kind] = WorkBudget(
                work_seconds=options.pattern_work_seconds, timeout_seconds=options.pattern_timeout_seconds
            )
        return budget

    def decide(self, findings: TierFindings, direction: str, min_length: MinLength | None = None) -> Decision:
        """Return the decision about the findings, and record its hits. `direction` is `input` or `output`."""
        return finish(self.decide_in_steps(findings, direction, min_length))

    def decide_in_steps(
        self,
        findings: TierFindings,
        direction: str,
        min_length: MinLength | None = None,
        split_values: Sequence[SplitValue] = (),
    ) -> Steps[Decision]:
        """Decide as `decide` does, with a step for each finding. `split_values` are matches that cross several
        texts."""
        decision = yield from decide_in_steps(
            self.policy, findings, self._groups, min_length=min_length, split_values=split_values
        )
        for hit in decision.hits:
            yield
            effect = hit.effect
            if effect == "prompt" and decision.effect in {"redact", "block"}:
                effect = decision.effect
            self._note(hit, _STATUS[effect], effect, direction)
        return decision

    def note_late(self, findings: TierFindings, direction: str) -> None:
        """Record the findings in a text that has already been released. Such findings are only logged."""
        for hit in decide(self.policy, findings, self._groups).hits:
            self._note(hit, "logged", "log_only", direction)

    def replacements(
        self, edits: Sequence[Edit], text: str, offset: int = 0, *, direction: str = "input"
    ) -> list[Replacement]:
        """Return the replacements for the edits. `text` begins at `offset` in the text that the positions of the edits
        refer to."""
        if edits:
            self.note_action("REDACT")
        return [Replacement(edit.start, edit.end, self._label(edit, text, offset, direction)) for edit in edits]

    def _label(self, edit: Edit, text: str, offset: int, direction: str) -> str:
        rule = edit.hit.rule
        value = edit.split_text or text[edit.start - offset : edit.end - offset]
        # Only values that the caller sent are reversible: a label must not reveal a value that was redacted in an
        # answer.
        return self.labels.label_for(rule.entity_type, value, reversible=rule.reversible and direction == "input")

    def note_action(self, action: str) -> None:
        """Set the action of the request to `action` if `action` is stronger than the present one."""
        if self.action is None or _ACTIONS.index(action) > _ACTIONS.index(self.action):
            self.action = action

    def settle_prompts(self, status: str) -> None:
        """Set the status of all pending events to `approved` or `cancelled`."""
        for key, event in list(self._events.items()):
            if event.status == "pending":
                del self._events[key]
                self._events[(*key[:2], status, *key[3:])] = msgspec.structs.replace(event, status=status)

    def note_unread(self, unread: Unread, *, blocked: bool, direction: str, count: int = 1) -> None:
        """Record content that no tier can read. It occurred `count` times."""
        event_name = f"unreadable content: {unread.reason}"
        self._note_unread(event_name, None, unread.kind, blocked=blocked, direction=direction, count=count)

    def note_failure(self, tier: str, reason: str, *, blocked: bool, direction: str) -> None:
        """Record that a tier failed."""
        self._note_unread(f"{tier}: {reason}", tier, "tier_failure", blocked=blocked, direction=direction)

    def _note_unread(
        self, event_name: str, tier: str | None, entity_type: str, *, blocked: bool, direction: str, count: int = 1
    ) -> None:
        action = "block" if blocked else "log_only"
        self._add(
            DlpEvent(
                rule_id=None,
                rule_name=event_name,
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
        """Return the request's events for its usage record."""
        return tuple(self._events.values())

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
        """Add an event. Events with the same rule, direction, status and entity type are merged, with the sum of their
        counts and the highest score."""
        key = (event.rule_id or event.rule_name, event.direction, event.status, event.entity_type)
        previous = self._events.get(key)
        if previous is not None:
            scores = [score for score in (previous.score, event.score) if score is not None]
            event = msgspec.structs.replace(
                event, match_count=previous.match_count + event.match_count, score=max(scores) if scores else None
            )
        self._events[key] = event
