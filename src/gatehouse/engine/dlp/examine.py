"""Runs the detection tiers over whole texts."""

from collections.abc import Sequence
from time import thread_time
from typing import Final, NamedTuple

from gatehouse.detection.findings import Finding
from gatehouse.detection.scanning.texts import scan_in_slices, scan_short
from gatehouse.detection.search.as_written import Part, SearchAborted
from gatehouse.detection.semantic.signs import scores_of_signs
from gatehouse.detection.units import units
from gatehouse.engine.dlp.decide import TierFindings
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.inspection import Inspection, WorkKind
from gatehouse.engine.dlp.steps import Steps, T, finish
from gatehouse.engine.dlp.tiers import Detectors, DlpOptions, TierFailed
from gatehouse.engine.dlp.turns import LONG_TEXT_CHARACTERS, SCHEDULER, OverBudget

#: The fixed cost of scanning a text, expressed in characters.
_TEXT_COST_CHARACTERS: Final = 64


class Examiner(NamedTuple):
    """Runs the tiers for one inspection. `direction` is `input` or `output`."""

    inspection: Inspection
    detectors: Detectors
    options: DlpOptions
    direction: str

    async def examine(
        self, texts: Sequence[str], *, json_text: bool = False, is_sealed: bool = False
    ) -> list[TierFindings]:
        """Return the findings of all tiers in whole texts. The model tiers skip texts that are still encoded
        in base64 (`is_sealed`), which a model cannot understand."""
        policy = self.inspection.policy
        patterns = await self.find_patterns_in_texts(texts, json_text=json_text)
        if is_sealed or (not policy.entities and not policy.labels):
            return list(map(TierFindings, patterns))
        entities = await self.find_entities(texts)
        labels = await self.find_labels(texts)
        return [TierFindings(*findings) for findings in zip(patterns, entities, labels, strict=True)]

    async def find_patterns(
        self, text: str, *, json_text: bool = False, parts: Sequence[Part] | None = None, decoded: bool = True
    ) -> list[Finding]:
        """Return the findings of patterns in a text. If `text` was joined from several texts, `parts` are their
        ranges in it. `decoded` means that encoded content, such as base64, is decoded and searched too."""
        [findings] = await self.find_patterns_in_texts([text], json_text=json_text, parts=parts, decoded=decoded)
        return findings

    async def find_patterns_in_texts(
        self,
        texts: Sequence[str],
        *,
        json_text: bool = False,
        parts: Sequence[Part] | None = None,
        decoded: bool = True,
    ) -> list[list[Finding]]:
        """Return the findings of patterns in each text. The texts are one unit of work, because many short texts take
        as long as one long text."""
        matchers = self.inspection.policy.matchers
        # Treat the text as long if there are custom patterns, which can be slow even on a short text.
        has_custom_patterns = any(matcher.as_written is not None for matcher in matchers)
        size = max(LONG_TEXT_CHARACTERS + 1 if has_custom_patterns else 0, _size(texts))
        is_short = size <= LONG_TEXT_CHARACTERS and not json_text
        short_findings = self._scan_short_texts(texts, decoded=decoded) if is_short else [None] * len(texts)
        if None not in short_findings:
            return short_findings  # type: ignore[return-value]
        results: list[list[Finding]] = [[] if findings is None else findings for findings in short_findings]

        def scan() -> Steps[bool]:
            is_over_budget = False
            for text, findings, result in zip(texts, short_findings, results, strict=True):
                if findings is not None:
                    continue
                try:
                    slices = scan_in_slices(
                        matchers, text, json_escapes=json_text, parts=parts, decoded=decoded, scan_short_failed=is_short
                    )
                    for slice_findings in slices:
                        result.extend(slice_findings)
                        yield
                except SearchAborted:
                    is_over_budget = True
            return is_over_budget

        # Findings that were made before the budget was spent still count.
        if await self.run_steps(size, scan(), fallback=False, kind="search"):
            self.tier_failed(TierFailed("regex", "too_long"))
        return results

    def _scan_short_texts(self, texts: Sequence[str], *, decoded: bool) -> list[list[Finding] | None]:
        """Return the results of `scan_short` for the texts. The work is not divided into steps. All results are None if
        the budget is spent."""
        budget = self.inspection.budget(self.options, self.direction, "search")
        if budget.is_spent:
            return [None] * len(texts)
        matchers = self.inspection.policy.matchers
        started = thread_time()
        findings = [scan_short(matchers, text, decoded=decoded) for text in texts]
        budget.charge(thread_time() - started)
        return findings

    async def run_steps(self, size: int, steps: Steps[T], *, fallback: T, kind: WorkKind = "other") -> T:
        """Run work of the pattern tier on `size` characters or bytes, and return its result. Small work runs at once;
        larger work runs in the fair scheduler.

        If the budget of the request is spent, the result depends on `DLP_FAIL_MODE`. With `open` it is `fallback`, even
        if a part of the work is done. With `closed`, `DlpUnavailable` is raised. `DlpUnavailable` is also raised if the
        scheduler's queue is full."""
        budget = self.inspection.budget(self.options, self.direction, kind)
        if size <= LONG_TEXT_CHARACTERS and not budget.is_spent:
            # Short work counts against the budget too, because a stream has many pieces. A piece that exceeds the
            # budget is completed. The next piece is not.
            started = thread_time()
            result = finish(steps)
            budget.charge(thread_time() - started)
            return result
        try:
            budget.spend(0.0)
            return await SCHEDULER.run(self.inspection.owner, steps, budget, size=size)
        except OverBudget as over_budget:
            self.tier_failed(TierFailed("regex", over_budget.reason))
            return fallback

    async def find_entities(self, texts: Sequence[str]) -> list[list[Finding]]:
        """Return the findings of the tier `ner` in each of the texts."""
        findings_by_text: list[list[Finding]] = [[] for _ in texts]
        if not self.inspection.policy.entities:
            return findings_by_text
        text_units = await self.run_steps(_size(texts), _split_into_units(texts), fallback=[])
        for (n, start, _), findings in zip(text_units, await self.recognize([p[2] for p in text_units]), strict=True):
            findings_by_text[n] += shifted(findings, start)
        return findings_by_text

    async def recognize(self, passages: Sequence[str]) -> list[list[Finding]]:
        """Return the findings of the tier `ner` in each passage. If the tier fails, returns no findings with
        `DLP_FAIL_MODE=open`, and raises `DlpUnavailable` with `closed`."""
        try:
            return await self.detectors.entities(passages, self.inspection.policy.open_labels)
        except TierFailed as failure:
            self.tier_failed(failure)
            return [[] for _ in passages]

    async def find_labels(self, texts: Sequence[str]) -> list[list[Finding]]:
        """Return the findings of the tier `llm` in each text. Each finding covers its whole text."""
        labels = tuple(self.inspection.policy.labels)
        if not labels:
            return [[] for _ in texts]
        try:
            scores = await self.detectors.semantic(texts, labels)
        except TierFailed as failure:
            self.tier_failed(failure)
            scores = [await self.run_steps(len(text), _scores_of_signs(text, labels), fallback={}) for text in texts]
        return [
            [Finding(0, len(text), label, score, label) for label, score in text_scores.items()]
            for text, text_scores in zip(texts, scores, strict=True)
        ]

    def tier_failed(self, failure: TierFailed) -> None:
        """Record the failure of a tier. Raises `DlpUnavailable` if `DLP_FAIL_MODE` is `closed`."""
        closed = self.options.fail_mode == "closed"
        self.inspection.note_failure(failure.tier, failure.reason, blocked=closed, direction=self.direction)
        if closed:
            self.inspection.note_action("BLOCK")
            raise DlpUnavailable(headers={"X-DLP-Action": "BLOCK", "Retry-After": "5"})


def _size(texts: Sequence[str]) -> int:
    """Return the size of the work on the texts in characters, including the fixed cost of each text."""
    return sum(map(len, texts)) + _TEXT_COST_CHARACTERS * len(texts)


def _split_into_units(texts: Sequence[str]) -> Steps[list[tuple[int, int, str]]]:
    """Split the texts into units. Return for each unit the index of the text that contains the unit, its start in that
    text, and its content."""
    numbered_units: list[tuple[int, int, str]] = []
    for number, text in enumerate(texts):
        for start, end in units(text):
            yield
            numbered_units.append((number, start, text[start:end]))
    return numbered_units


def _scores_of_signs(text: str, labels: Sequence[str]) -> Steps[dict[str, float]]:
    """Return the scores of the labels that are found without a model, by `semantic.signs`."""
    yield
    return scores_of_signs(text, labels)


def shifted(findings: Sequence[Finding], offset: int) -> list[Finding]:
    """Return the findings with their positions moved by `offset`."""
    if not offset:
        return list(findings)
    return [Finding(f.start + offset, f.end + offset, f.entity_type, f.score, f.source) for f in findings]
