"""Inspects one text of an answer: holds back the part to which a finding may still extend, and redacts the text.

A whole text takes the same steps as a text in pieces, so the caller receives the same text with and without streaming.
A stream that is not held lacks two inspections, which need the whole text: the semantic tier, and views such as decoded
base64.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from gatehouse.detection.findings import Finding
from gatehouse.detection.scanning.texts import MAX_SLICE_CHARACTERS
from gatehouse.detection.scanning.windows import Scanner
from gatehouse.detection.units import units
from gatehouse.engine.dlp.decide import MIN_SEALED_CHARACTERS, NO_HITS, Decision, Hit, MinLength, TierFindings
from gatehouse.engine.dlp.examine import Examiner, shifted
from gatehouse.engine.dlp.inspection import Replacement
from gatehouse.engine.dlp.json_texts.replacement import (
    JsonCursor,
    escape_json_string,
    fit_to_json,
    fit_whole_json,
    is_json_in_steps,
    scalar_start,
)
from gatehouse.engine.dlp.steps import Steps
from gatehouse.engine.dlp.streams.link_addresses import MAX_ADDRESS_CHARACTERS, is_inside_address


class Channel:
    """One text of an answer. Positions are code points from the start of the text. The text before `released` may be
    sent, in the form that `take` returns. If `blocking_hit` is set, no text from `released` on may be sent. If
    `pending_approval` is set, that hit needs approval before text from `released` on may be sent; `approve` continues
    after the approval."""

    def __init__(
        self, examiner: Examiner, *, json_text: bool = False, is_sealed: bool = False, scans: bool = True
    ) -> None:
        """Create the channel. `scans` is False for a text that is inspected as a whole. A text with `is_sealed` cannot
        be changed, so it is either passed or blocked."""
        self.json_text = json_text
        self.is_sealed = is_sealed
        self._examiner = examiner
        self._inspection = examiner.inspection
        policy = examiner.inspection.policy
        self._scanner = Scanner(policy.matchers, json_escapes=json_text) if scans else None
        #: pieces that have not been passed to the scanner
        self._new_pieces: list[str] = []
        self._finds_entities = bool(policy.entities) and not is_sealed
        self._json = JsonCursor() if json_text else None
        #: whether the text is complete and is JSON
        self._all_json = False
        #: the text from position `_base` on, without `_unjoined_pieces`. Text before `_taken` is no longer needed.
        self._text = ""
        self._base = self._taken = 0
        #: scanned pieces that follow `_text`. They are not joined at once, so that a held-back text is not copied for
        #: each piece.
        self._unjoined_pieces: list[str] = []
        #: the scanned text from `_recognized_to` on
        self._unrecognized = ""
        #: the pieces of a text that is inspected as a whole
        self._unscanned_pieces: list[str] = []
        self.end = 0
        self._recognized_to = 0
        #: whether the budget for searches is spent
        self._is_over_budget = False
        self._patterns: list[Finding] = []
        self._entities: list[Finding] = []
        self._labels: list[Finding] = []
        #: the replacements that were not sent yet, in order and without overlaps
        self._edits: deque[Replacement] = deque()
        #: the end of the released text in its original form; kept if labels are restored in this text
        self._released_end = ""
        #: edits of the text that was taken, for events that repeat the text
        self.applied: list[Replacement] = []
        self.released = 0
        self.blocking_hit: Hit | None = None
        self.pending_approval: Hit | None = None
        self._approval_cut = 0
        #: the argument `final` of an `advance` that was skipped because of `pending_approval`
        self.skipped_advance: bool | None = None

    def push(self, text: str) -> int:
        """Add the next piece. Returns the position of its end."""
        self.end += len(text)
        if self._scanner is None:
            self._unscanned_pieces.append(text)
        else:
            self._new_pieces.append(text)
        return self.end

    @property
    def text(self) -> str:
        """Return the text that has arrived. Only for a text that is inspected as a whole."""
        return "".join(self._unscanned_pieces)

    async def advance(self, *, final: bool) -> None:
        """Inspect the new text, and release the text to which no finding can extend any more."""
        assert self._scanner is not None
        if self.blocking_hit is not None:
            return
        if self.pending_approval is not None:
            self.skipped_advance = final or bool(self.skipped_advance)
            return
        text = "".join(self._new_pieces)
        self._new_pieces.clear()
        self._unjoined_pieces.append(text)
        cut: int | None = self.end
        if not self._is_over_budget:
            steps = self._scan(self._scanner, text, final=final)
            cut = await self._examiner.run_steps(len(text), steps, fallback=None, kind="search")
        if cut is None:
            # With `DLP_FAIL_MODE=open`, the text that follows passes once the budget is spent, because the scanner has
            # not read all of it. Findings so far are still redacted.
            self._is_over_budget = True
            self._patterns += self._scanner.unreleased_findings()
            cut = self.end
        if self._finds_entities:
            self._unrecognized += text
            cut = min(cut, await self._recognize(final=final))
        self._release(cut, final=final)

    def _scan(self, scanner: Scanner, text: str, *, final: bool) -> Steps[int]:
        """Scan the new text. Returns the position up to which the scanner allows its release."""
        for start in range(0, len(text) - MAX_SLICE_CHARACTERS, MAX_SLICE_CHARACTERS):
            scanner.push(text[start : start + MAX_SLICE_CHARACTERS])
            findings, _ = scanner.advance(final=False)
            self._patterns += findings
            yield
        scanner.push(text[-(len(text) % MAX_SLICE_CHARACTERS or MAX_SLICE_CHARACTERS) :])
        findings, cut = scanner.advance(final=final)
        self._patterns += findings
        return cut

    def process_whole(self, text: str, findings: TierFindings) -> Steps[bool]:
        """Inspect the whole text, with its findings. Returns True when the decision is made."""
        self._text, self.end = text, len(text)
        self._all_json = yield from is_json_in_steps(text)
        self._unscanned_pieces.clear()
        self._patterns, self._entities, self._labels = [], [], []
        decision = NO_HITS
        if any(findings):
            decision = yield from self._inspection.decide_in_steps(findings, self._examiner.direction, self._min_length)
        changes, cut = self._changes(decision, self.end)
        if self._all_json:
            changes = yield from fit_whole_json(changes, self._text)
        self._apply(changes, cut)
        return True

    def release_unchanged(self, text: str) -> None:
        """Release the whole text unchanged."""
        self._text, self.released = text, self.end
        self._unscanned_pieces.clear()

    def approve(self) -> None:
        """Release the text that the approval covers. The caller repeats a `skipped_advance`."""
        self.pending_approval = None
        if self._inspection.labels.originals_by_label:
            self._keep_released_end(self._approval_cut)
        self.released = self._approval_cut
        if self._json is not None and self._json.position < self.released:
            self._json.move(self._text[self._json.position - self._base : self.released - self._base])

    def take(self, start: int, end: int) -> str:
        """Return the released text between two positions in the form that may be sent. Then drops the text before
        `end`. If an edit lies in several ranges, its label is in the first of them."""
        pieces: list[str] = []
        position = start
        for edit in self._edits:
            if edit.start >= end:
                break
            if edit.end <= start:
                continue
            if edit.start >= start:
                pieces.append(self._text[position - self._base : edit.start - self._base])
                pieces.append(edit.text)
            position = min(edit.end, end)
        pieces.append(self._text[position - self._base : end - self._base])
        self.drop(end)
        return "".join(pieces)

    def drop(self, end: int) -> None:
        """Drop the text before `end`, which was sent unchanged or was taken."""
        while self._edits and self._edits[0].end <= end:
            self.applied.append(self._edits.popleft())
        self._taken = max(self._taken, end)
        # The remaining text is copied only if it is shorter than the dropped text, so each character is copied about
        # once.
        if self._taken - self._base > len(self._text) // 2:
            self._text = self._text[self._taken - self._base :]
            self._base = self._taken

    def repeat(self, text: str) -> str:
        """Return the whole text of the channel in the form that was sent, for an event that repeats the text."""
        pieces: list[str] = []
        position = 0
        for edit in self.applied:
            pieces += (text[position : edit.start], edit.text)
            position = edit.end
        return "".join([*pieces, text[position:]])

    def is_changed(self, start: int, end: int) -> bool:
        """Return whether the released text between two positions was edited. The text before `start` must have been
        taken."""
        return bool(self._edits) and self._edits[0].start < end and self._edits[0].end > start

    async def _recognize(self, *, final: bool) -> int:
        text = self._unrecognized
        unit_ranges = list(units(text, final=final))
        if unit_ranges:
            findings_by_unit = await self._examiner.recognize([text[start:end] for start, end in unit_ranges])
            for (start, _), findings in zip(unit_ranges, findings_by_unit, strict=True):
                self._entities += shifted(findings, self._recognized_to + start)
            recognized = unit_ranges[-1][1]
            self._recognized_to += recognized
            self._unrecognized = text[recognized:]
        return self._recognized_to

    def _release(self, cut: int, *, final: bool) -> None:
        if not final:
            # This check comes first because it runs for each event and there may be many waiting findings.
            if cut <= self.released:
                return
            self._join()
            cut = self._cut_before_open(cut)
            if cut <= self.released:
                return
        self._join()
        # Most texts have no findings that need a decision.
        decision = NO_HITS
        if self._has_findings():
            decision = self._inspection.decide(self._take_findings(cut), self._examiner.direction, self._min_length)
        self._apply(*self._changes(decision, cut))

    def _join(self) -> None:
        self._text = "".join([self._text, *self._unjoined_pieces])
        self._unjoined_pieces.clear()

    @property
    def _min_length(self) -> MinLength | None:
        return _min_sealed_length if self.is_sealed else None

    def _changes(self, decision: Decision, cut: int) -> tuple[list[Replacement], int]:
        """Return the changes before the cut, and the position up to which the text is released. The position is the
        cut, or the start of the first hit that blocks."""
        if decision.effect == "prompt":
            # The text is sent unchanged after an approval.
            self.pending_approval, self._approval_cut = decision.decisive, cut
            return [], self.released
        if decision.effect == "block":
            self.blocking_hit = decision.decisive
            cut = min(edit.start for edit in decision.edits if edit.hit.effect == "block")
        edits = [edit for edit in decision.edits if edit.end <= cut]
        changes = self._inspection.replacements(edits, self._text, self._base, direction=self._examiner.direction)
        if self._inspection.labels.originals_by_label and not self.is_sealed:
            changes = self._restore_labels(changes, cut)
            self._keep_released_end(cut)
        return changes, cut

    def _apply(self, changes: Sequence[Replacement], cut: int) -> None:
        if self._json is not None and not self._all_json:
            changes = fit_to_json(changes, self._text, self._json, base=self._base, unchanged_until=self.released)
            if self._json.position < cut:
                self._json.move(self._text[self._json.position - self._base : cut - self._base])
        self._edits += changes
        self.released = max(cut, self.released)

    def _has_findings(self) -> bool:
        """Return whether there are findings that are not decided yet."""
        return bool(self._patterns or self._entities or self._labels)

    def _take_findings(self, cut: int) -> TierFindings:
        """Remove and return the undecided findings that end before the cut."""
        findings = TierFindings(*([f for f in waiting if f.end <= cut] for waiting in self._waiting_findings()))
        self._patterns, self._entities, self._labels = (
            [f for f in waiting if f.end > cut] for waiting in self._waiting_findings()
        )
        return findings

    def _waiting_findings(self) -> tuple[list[Finding], list[Finding], list[Finding]]:
        return self._patterns, self._entities, self._labels

    def _cut_before_open(self, cut: int) -> int:
        """Return the cut, moved to the start of any finding or incomplete label that it would split."""
        max_label_length = self._inspection.labels.max_length
        if max_label_length:
            bracket = self._text.rfind("[", max(0, cut - max_label_length - self._base), max(0, cut - self._base))
            if bracket >= 0 and "]" not in self._text[bracket : cut - self._base]:
                cut = self._base + bracket
        if self._json is not None:
            cut = max(self._base + scalar_start(self._text, cut - self._base), self.released)
        if not self._has_findings():
            return cut
        findings = sorted(
            (f for waiting in self._waiting_findings() for f in waiting), key=lambda f: f.start, reverse=True
        )
        moved = True
        while moved:
            moved = False
            for finding in findings:
                if finding.start < cut < finding.end:
                    cut, moved = finding.start, True
        return cut

    def _keep_released_end(self, end: int) -> None:
        """Keep the text before `end`, which is released next. A later label may be inside a link address that began in
        it."""
        self._released_end = self._text_before(end - self._base)

    def _text_before(self, position: int) -> str:
        """Return the original text before `position`, an unreleased position of `_text`. The text is at most as long as
        an address."""
        start = max(0, self.released - self._base)
        position = max(position, start)
        # The copy is bounded because it is made for each label: a text may have megabytes, and a label in each line.
        return (self._released_end + self._text[max(start, position - MAX_ADDRESS_CHARACTERS) : position])[
            -MAX_ADDRESS_CHARACTERS:
        ]

    def _restore_labels(self, replacements: Sequence[Replacement], cut: int) -> list[Replacement]:
        """Return the replacements, together with replacements that restore the values of the request's labels."""
        values, base = self._inspection.labels.originals_by_label, self._base
        restored = []
        opening = self._text.find("[", max(0, self.released - base), cut - base)
        while opening >= 0:
            closing = self._text.find("]", opening, min(opening + self._inspection.labels.max_length, cut - base))
            value = values.get(self._text[opening : closing + 1]) if closing >= 0 else None
            # A program reads the arguments of tools and does not render them, so an address in them is not requested.
            if value is not None and (self._json is not None or not is_inside_address(self._text_before(opening))):
                text = escape_json_string(value) if self._json is not None or self._all_json else value
                restored.append(Replacement(base + opening, base + closing + 1, text))
            opening = self._text.find("[", opening + 1, cut - base)
        merged = list(replacements)
        starts = [edit.start for edit in replacements]
        for edit in restored:
            after = bisect_left(starts, edit.end)
            # A restored value does not replace text that a rule redacts in the answer.
            if not after or replacements[after - 1].end <= edit.start:
                merged.append(edit)
        return sorted(merged, key=lambda edit: edit.start)


def _min_sealed_length(_: Finding) -> int:
    return MIN_SEALED_CHARACTERS
