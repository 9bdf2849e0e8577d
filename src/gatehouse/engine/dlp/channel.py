"""One text of an answer: held back as far as a finding may still reach, changed where it must be.

A whole text goes through the same steps as one that comes in pieces, so that what a caller reads is the same streamed
and not. Only views that need the whole text (base64 and the like) and the semantic tier are left out of a stream that
is not held.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from gatehouse.detection.findings import Finding
from gatehouse.detection.scanning import SLICE
from gatehouse.detection.units import units
from gatehouse.detection.windows import Scanner
from gatehouse.engine.dlp.addresses import MAX_ADDRESS_CHARACTERS, is_inside_address
from gatehouse.engine.dlp.decide import MIN_SEALED_LENGTH, NO_HITS, Decision, Hit, MinLength, TierFindings
from gatehouse.engine.dlp.examine import Examiner, shifted
from gatehouse.engine.dlp.inspection import Replacement
from gatehouse.engine.dlp.json_text import (
    JsonCursor,
    escape_json_string,
    fit_to_json,
    fit_whole_json,
    is_json_in_steps,
    scalar_start,
)
from gatehouse.engine.dlp.steps import Steps


class Channel:
    """Positions are code points of the text from its start. `released`: what is before it may go on, as `take` gives
    it. `stopped`: the hit that forbids everything from `released` on. `asks`: a hit that wants a person's word before
    anything from `released` on may go; `go_on` says that it was given."""

    def __init__(
        self, examiner: Examiner, *, json_text: bool = False, is_sealed: bool = False, scans: bool = True
    ) -> None:
        """`scans` is False for a text that will be looked at as a whole. One that `is_sealed` stays as it is, or
        stops."""
        self.json_text = json_text
        self.is_sealed = is_sealed
        self._examiner = examiner
        self._inspection = examiner.inspection
        policy = examiner.inspection.policy
        self._scanner = Scanner(policy.matchers, json_escapes=json_text) if scans else None
        #: pieces that the scanner has not got
        self._unscanned: list[str] = []
        self._in_units = bool(policy.entities) and not is_sealed
        self._json = JsonCursor() if json_text else None
        #: all of the text is there, and is JSON
        self._all_json = False
        #: text from `_base` on; what is before `_taken` is not needed any more
        self._text = ""
        self._base = self._taken = 0
        #: what came of a text that is not scanned
        self._coming: list[str] = []
        self.end = 0
        self._read = 0
        #: the budget for searches is spent
        self._is_given_up = False
        self._patterns: list[Finding] = []
        self._entities: list[Finding] = []
        self._labels: list[Finding] = []
        #: in order, apart from each other
        self._edits: deque[Replacement] = deque()
        #: the end of what was released, as it came, where labels are turned back in it
        self._before = ""
        #: those whose stretch has gone on, for whoever says the text again
        self.applied: list[Replacement] = []
        self.released = 0
        self.blocking_hit: Hit | None = None
        self.pending_approval: Hit | None = None
        self._asked_to = 0

    def push(self, text: str) -> int:
        """The next piece; where it ends."""
        self.end += len(text)
        if self._scanner is None:
            self._coming.append(text)
        else:
            self._text += text
            self._unscanned.append(text)
        return self.end

    @property
    def text(self) -> str:
        """All that came of a text that is not scanned."""
        return "".join(self._coming)

    async def advance(self, *, final: bool) -> None:
        """Looks at what came, and releases what can be."""
        assert self._scanner is not None
        if self.blocking_hit is not None or self.pending_approval is not None:
            return
        text = "".join(self._unscanned)
        self._unscanned.clear()
        cut: int | None = self.end
        if not self._is_given_up:
            steps = self._scan(self._scanner, text, final=final)
            cut = await self._examiner.run_steps(len(text), steps, fallback=None, work="searching")
        if cut is None:
            # Past the budget, where `DLP_FAIL_MODE` is `open`, all goes on from here on: the scanner has not seen all.
            self._is_given_up = True
            cut = self.end
        if self._in_units:
            cut = min(cut, await self._recognize(final=final))
        self._release(cut, final=final)

    def _scan(self, scanner: Scanner, text: str, *, final: bool) -> Steps[int]:
        """Up to where the text may be released for what the scanner sees of it."""
        for start in range(0, len(text) - SLICE, SLICE):
            scanner.push(text[start : start + SLICE])
            findings, _ = scanner.advance(final=False)
            self._patterns += findings
            yield
        scanner.push(text[-(len(text) % SLICE or SLICE) :])
        findings, cut = scanner.advance(final=final)
        self._patterns += findings
        return cut

    def process_whole(self, text: str, found: TierFindings) -> Steps[bool]:
        """All of the text at once, and everything that was found in it. True: it is decided about."""
        self._text, self.end = text, len(text)
        self._all_json = yield from is_json_in_steps(text)
        self._coming.clear()
        self._patterns, self._entities, self._labels = [], [], []
        decision = NO_HITS
        if any(found):
            decision = yield from self._inspection.decide_in_steps(found, self._examiner.direction, self._min_length)
        changes, cut = self._changes(decision, self.end)
        if self._all_json:
            changes = yield from fit_whole_json(changes, self._text)
        self._apply(changes, cut)
        return True

    def release_unchanged(self, text: str) -> None:
        """All of the text goes on as it is."""
        self._text, self.released = text, self.end
        self._coming.clear()

    def approve(self) -> None:
        """A person approved what the channel asked about."""
        self.pending_approval = None
        if self._inspection.labels.values:
            self._remember(self._asked_to)
        self.released = self._asked_to
        if self._json is not None and self._json.position < self.released:
            self._json.move(self._text[self._json.position - self._base : self.released - self._base])

    def take(self, start: int, end: int) -> str:
        """The released text between two positions as it may go on. Goes forward only: what is before `end` is
        forgotten. What stands for a value that lies over several stretches is in the first of them."""
        pieces: list[str] = []
        place = start
        for edit in self._edits:
            if edit.start >= end:
                break
            if edit.end <= start:
                continue
            if edit.start >= start:
                pieces.append(self._text[place - self._base : edit.start - self._base])
                pieces.append(edit.text)
            place = min(edit.end, end)
        pieces.append(self._text[place - self._base : end - self._base])
        self.drop(end)
        return "".join(pieces)

    def drop(self, end: int) -> None:
        """What is before it goes on as it is, or has been taken."""
        while self._edits and self._edits[0].end <= end:
            self.applied.append(self._edits.popleft())
        self._taken = max(self._taken, end)
        # The rest is moved when that is less than what has gone: each character is moved once or so.
        if self._taken - self._base > len(self._text) // 2:
            self._text = self._text[self._taken - self._base :]
            self._base = self._taken

    def repeat(self, text: str) -> str:
        """All of the channel's text, said once more, as it went on."""
        pieces: list[str] = []
        place = 0
        for edit in self.applied:
            pieces += (text[place : edit.start], edit.text)
            place = edit.end
        return "".join([*pieces, text[place:]])

    def is_changed(self, start: int, end: int) -> bool:
        """Whether the released text between two positions differs from what came. What is before `start` was taken."""
        return bool(self._edits) and self._edits[0].start < end and self._edits[0].end > start

    async def _recognize(self, *, final: bool) -> int:
        rest = self._text[self._read - self._base :]
        places = list(units(rest, final=final))
        if places:
            told = await self._examiner.recognize([rest[start:end] for start, end in places])
            for (start, _), findings in zip(places, told, strict=True):
                self._entities += shifted(findings, self._read + start)
            self._read += places[-1][1]
        return self._read

    def _release(self, cut: int, *, final: bool) -> None:
        if not final:
            # First: what waits may be much, and each event comes by here.
            if cut <= self.released:
                return
            cut = self._before_open(cut)
            if cut <= self.released:
                return
        # Mostly nothing was found, and nothing is to be decided.
        decision = NO_HITS
        if self._finds():
            decision = self._inspection.decide(self._ready(cut), self._examiner.direction, self._min_length)
        self._apply(*self._changes(decision, cut))

    @property
    def _min_length(self) -> MinLength | None:
        return _of_sealed if self.is_sealed else None

    def _changes(self, decision: Decision, cut: int) -> tuple[list[Replacement], int]:
        """What is to be changed before the cut, or before what forbids more, and up to where the text may go on."""
        if decision.effect == "prompt":
            # Shown as it is once a person has said so.
            self.pending_approval, self._asked_to = decision.decisive, cut
            return [], self.released
        if decision.effect == "block":
            self.blocking_hit = decision.decisive
            cut = min(edit.start for edit in decision.edits if edit.hit.effect == "block")
        edits = [edit for edit in decision.edits if edit.end <= cut]
        changes = self._inspection.replacements(edits, self._text, self._base, direction=self._examiner.direction)
        if self._inspection.labels.values and not self.is_sealed:
            changes = self._restored(changes, cut)
            self._remember(cut)
        return changes, cut

    def _apply(self, changes: Sequence[Replacement], cut: int) -> None:
        if self._json is not None and not self._all_json:
            changes = fit_to_json(changes, self._text, self._json, base=self._base, untouched=self.released)
            if self._json.position < cut:
                self._json.move(self._text[self._json.position - self._base : cut - self._base])
        self._edits += changes
        self.released = max(cut, self.released)

    def _finds(self) -> bool:
        """Whether anything was found that nobody has decided about."""
        return bool(self._patterns or self._entities or self._labels)

    def _ready(self, cut: int) -> TierFindings:
        """Everything found before the cut; it is taken from what waits."""
        ready = TierFindings(*([f for f in waiting if f.end <= cut] for waiting in self._waiting()))
        self._patterns, self._entities, self._labels = (
            [f for f in waiting if f.end > cut] for waiting in self._waiting()
        )
        return ready

    def _waiting(self) -> tuple[list[Finding], list[Finding], list[Finding]]:
        return self._patterns, self._entities, self._labels

    def _before_open(self, cut: int) -> int:
        """The cut, before whatever it would cut through: findings, a label that may still be completed."""
        longest = self._inspection.labels.max_length
        if longest:
            bracket = self._text.rfind("[", max(0, cut - longest - self._base), max(0, cut - self._base))
            if bracket >= 0 and "]" not in self._text[bracket : cut - self._base]:
                cut = self._base + bracket
        if self._json is not None:
            cut = max(self._base + scalar_start(self._text, cut - self._base), self.released)
        if not self._finds():
            return cut
        findings = sorted((f for waiting in self._waiting() for f in waiting), key=lambda f: f.start, reverse=True)
        moved = True
        while moved:
            moved = False
            for finding in findings:
                if finding.start < cut < finding.end:
                    cut, moved = finding.start, True
        return cut

    def _remember(self, end: int) -> None:
        """Keeps what labels that follow may be inside of, before everything up to `end` is released."""
        self._before = self._text_before(end - self._base)

    def _text_before(self, place: int) -> str:
        """The text before a place of `_text` behind what was released, as much of it as an address may have."""
        start = max(0, self.released - self._base)
        place = max(place, start)
        # A text may be megabytes long with a label in each line: no label copies all of it.
        return (self._before + self._text[max(start, place - MAX_ADDRESS_CHARACTERS) : place])[-MAX_ADDRESS_CHARACTERS:]

    def _restored(self, replacements: Sequence[Replacement], cut: int) -> list[Replacement]:
        """With labels of the request turned back into the values that they stand for."""
        values, base = self._inspection.labels.values, self._base
        restored = []
        place = self._text.find("[", max(0, self.released - base), cut - base)
        while place >= 0:
            close = self._text.find("]", place, min(place + self._inspection.labels.max_length, cut - base))
            value = values.get(self._text[place : close + 1]) if close >= 0 else None
            # A tool's arguments are read by a program, which renders nothing.
            if value is not None and (self._json is not None or not is_inside_address(self._text_before(place))):
                text = escape_json_string(value) if self._json is not None or self._all_json else value
                restored.append(Replacement(base + place, base + close + 1, text))
            place = self._text.find("[", place + 1, cut - base)
        merged = list(replacements)
        starts = [edit.start for edit in replacements]
        for edit in restored:
            after = bisect_left(starts, edit.end)
            # What a rule redacts in the answer stays redacted.
            if not after or replacements[after - 1].end <= edit.start:
                merged.append(edit)
        return sorted(merged, key=lambda edit: edit.start)


def _of_sealed(_: Finding) -> int:
    return MIN_SEALED_LENGTH
