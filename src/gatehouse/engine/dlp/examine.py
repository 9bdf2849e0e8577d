"""Asking the tiers: a whole text in, everything found in it out."""

from collections.abc import Sequence
from time import thread_time
from typing import Final, NamedTuple

from gatehouse.detection.as_written import Part, SearchGivenUp
from gatehouse.detection.findings import Finding
from gatehouse.detection.scanning import scan_in_slices, scan_short
from gatehouse.detection.semantic.signs import scores_of_signs
from gatehouse.detection.units import units
from gatehouse.engine.dlp.decide import TierFindings
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.inspection import Inspection, Work
from gatehouse.engine.dlp.steps import Steps, T, finish
from gatehouse.engine.dlp.tiers import Detectors, DlpOptions, TierFailed
from gatehouse.engine.dlp.turns import LONG_TEXT_SIZE, SCHEDULER, OverBudget

#: Beginning with a text takes as long as so many characters of it.
_A_TEXT: Final = 64


class Examiner(NamedTuple):
    """What inspecting needs besides the text."""

    inspection: Inspection
    detectors: Detectors
    options: DlpOptions
    direction: str

    async def examine(
        self, texts: Sequence[str], *, json_text: bool = False, is_sealed: bool = False
    ) -> list[TierFindings]:
        """All tiers over whole texts. What is sealed has no meaning that a model could read."""
        policy = self.inspection.policy
        patterns = await self.find_patterns_in_texts(texts, json_text=json_text)
        if is_sealed or (not policy.entities and not policy.labels):
            return list(map(TierFindings, patterns))
        entities = await self.find_entities(texts)
        labels = await self.find_labels(texts)
        return [TierFindings(*found) for found in zip(patterns, entities, labels, strict=True)]

    async def find_patterns(
        self, text: str, *, json_text: bool = False, parts: Sequence[Part] | None = None, decoded: bool = True
    ) -> list[Finding]:
        """`parts`: the texts that `text` is made of. `decoded`: also what is encoded."""
        [found] = await self.find_patterns_in_texts([text], json_text=json_text, parts=parts, decoded=decoded)
        return found

    async def find_patterns_in_texts(
        self,
        texts: Sequence[str],
        *,
        json_text: bool = False,
        parts: Sequence[Part] | None = None,
        decoded: bool = True,
    ) -> list[list[Finding]]:
        """The same of each text. All of them are one piece of work: many short ones take as long as one long text."""
        matchers = self.inspection.policy.matchers
        # A short text may take long, too, by patterns of the organization's own.
        own = any(matcher.as_written is not None for matcher in matchers)
        size = max(LONG_TEXT_SIZE + 1 if own else 0, _size(texts))
        is_tried = size <= LONG_TEXT_SIZE and not json_text
        found = self._short(texts, decoded=decoded) if is_tried else [None] * len(texts)
        if None not in found:
            return found  # type: ignore[return-value]
        results: list[list[Finding]] = [[] if findings is None else findings for findings in found]

        def scan() -> Steps[bool]:
            is_given_up = False
            for text, findings, result in zip(texts, found, results, strict=True):
                if findings is not None:
                    continue
                try:
                    slices = scan_in_slices(
                        matchers, text, json_escapes=json_text, parts=parts, decoded=decoded, is_tried=is_tried
                    )
                    for part in slices:
                        result.extend(part)
                        yield
                except SearchGivenUp:
                    is_given_up = True
            return is_given_up

        # What was found before the budget was spent counts.
        if await self.run_steps(size, scan(), fallback=False, work="searching"):
            self.tier_failed(TierFailed("regex", "too_long"))
        return results

    def _short(self, texts: Sequence[str], *, decoded: bool) -> list[list[Finding] | None]:
        """What `scan_short` finds in each text, done at once. None also where the budget is spent."""
        budget = self.inspection.budget(self.options, self.direction, "searching")
        if budget.is_spent:
            return [None] * len(texts)
        matchers = self.inspection.policy.matchers
        began = thread_time()
        found = [scan_short(matchers, text, decoded=decoded) for text in texts]
        budget.charge(thread_time() - began)
        return found

    async def run_steps(self, size: int, steps: Steps[T], *, fallback: T, work: Work = "around") -> T:
        """The result of work of the pattern tier on `size` characters or bytes: done at once where they are few, else
        in turns with others' work. Where the request's budget is spent, `fallback` is the result, although a part of
        the work may be done, or `DlpUnavailable` is raised, as `DLP_FAIL_MODE` says. Raises `DlpUnavailable` where too
        many wait, too."""
        budget = self.inspection.budget(self.options, self.direction, work)
        if size <= LONG_TEXT_SIZE and not budget.is_spent:
            # Many short pieces of a stream take long together: what is over the budget now fails the next one.
            began = thread_time()
            result = finish(steps)
            budget.charge(thread_time() - began)
            return result
        try:
            budget.spend(0.0)
            return await SCHEDULER.run(self.inspection.owner, steps, budget, size=size)
        except OverBudget as over:
            self.tier_failed(TierFailed("regex", over.reason))
            return fallback

    async def find_entities(self, texts: Sequence[str]) -> list[list[Finding]]:
        found: list[list[Finding]] = [[] for _ in texts]
        if not self.inspection.policy.entities:
            return found
        places = await self.run_steps(_size(texts), _in_units(texts), fallback=[])
        for (n, start, _), findings in zip(places, await self.recognize([p[2] for p in places]), strict=True):
            found[n] += shifted(findings, start)
        return found

    async def recognize(self, passages: Sequence[str]) -> list[list[Finding]]:
        """Nothing found where the tier fails and `DLP_FAIL_MODE` is `open`. Raises `DlpUnavailable` otherwise."""
        try:
            return await self.detectors.entities(passages, self.inspection.policy.open_labels)
        except TierFailed as failed:
            self.tier_failed(failed)
            return [[] for _ in passages]

    async def find_labels(self, texts: Sequence[str]) -> list[list[Finding]]:
        """A label is about a whole text, so its finding is too."""
        wanted = tuple(self.inspection.policy.labels)
        if not wanted:
            return [[] for _ in texts]
        try:
            scores = await self.detectors.semantic(texts, wanted)
        except TierFailed as failed:
            self.tier_failed(failed)
            scores = [await self.run_steps(len(text), _signs(text, wanted), fallback={}) for text in texts]
        return [
            [Finding(0, len(text), label, score, label) for label, score in told.items()]
            for text, told in zip(texts, scores, strict=True)
        ]

    def tier_failed(self, failed: TierFailed) -> None:
        """Notes it. Raises `DlpUnavailable` where `DLP_FAIL_MODE` is `closed`."""
        closed = self.options.fail_mode == "closed"
        self.inspection.note_failure(failed.tier, failed.reason, blocked=closed, direction=self.direction)
        if closed:
            self.inspection.note_action("BLOCK")
            raise DlpUnavailable(headers={"X-DLP-Action": "BLOCK", "Retry-After": "5"})


def _size(texts: Sequence[str]) -> int:
    """What work on the texts is measured by: each costs its beginning, too."""
    return sum(map(len, texts)) + _A_TEXT * len(texts)


def _in_units(texts: Sequence[str]) -> Steps[list[tuple[int, int, str]]]:
    """Of each unit the number of its text, where it begins there, and what it is."""
    places: list[tuple[int, int, str]] = []
    for number, text in enumerate(texts):
        for start, end in units(text):
            yield
            places.append((number, start, text[start:end]))
    return places


def _signs(text: str, labels: Sequence[str]) -> Steps[dict[str, float]]:
    """What needs no model."""
    yield
    return scores_of_signs(text, labels)


def shifted(findings: Sequence[Finding], offset: int) -> list[Finding]:
    if not offset:
        return list(findings)
    return [Finding(f.start + offset, f.end + offset, f.entity_type, f.score, f.source) for f in findings]
