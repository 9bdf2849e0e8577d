"""Asking the tiers: a whole text in, everything found in it out."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from gatehouse.detection.findings import Finding
from gatehouse.detection.scanning import scan_in_slices
from gatehouse.detection.units import units
from gatehouse.engine.dlp.aside import LONG, GivenUp, beside
from gatehouse.engine.dlp.decide import Found
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.tiers import Detectors, DlpOptions, TierFailed


class Examiner(NamedTuple):
    """What inspecting needs besides the text."""

    inspection: Inspection
    detectors: Detectors
    options: DlpOptions
    direction: str

    async def whole(self, texts: Sequence[str], *, json_text: bool = False) -> list[Found]:
        """All tiers over whole texts."""
        policy = self.inspection.policy
        if not policy.entities and not policy.labels:
            return [Found(await self.patterns(text, json_text=json_text)) for text in texts]
        patterns = [await self.patterns(text, json_text=json_text) for text in texts]
        entities = await self.entities_of(texts)
        labels = await self.labels_of(texts)
        return [Found(*found) for found in zip(patterns, entities, labels, strict=True)]

    async def patterns(self, text: str, *, json_text: bool = False) -> list[Finding]:
        if len(text) <= LONG:
            return [*chain.from_iterable(scan_in_slices(self.inspection.policy.matchers, text, json_escapes=json_text))]

        def scanned(given_up: GivenUp) -> list[Finding]:
            found: list[Finding] = []
            for part in scan_in_slices(self.inspection.policy.matchers, text, json_escapes=json_text):
                given_up.check()
                found += part
            return found

        return await beside(len(text), scanned)

    async def entities_of(self, texts: Sequence[str]) -> list[list[Finding]]:
        if not self.inspection.policy.entities:
            return [[] for _ in texts]
        places = [(n, start, text[start:end]) for n, text in enumerate(texts) for start, end in units(text)]
        found: list[list[Finding]] = [[] for _ in texts]
        for (n, start, _), findings in zip(places, await self.entities([p[2] for p in places]), strict=True):
            found[n] += shifted(findings, start)
        return found

    async def entities(self, passages: Sequence[str]) -> list[list[Finding]]:
        """Nothing found where the tier fails and `DLP_FAIL_MODE` is `open`. Raises `DlpUnavailable` otherwise."""
        try:
            return await self.detectors.entities(passages)
        except TierFailed as failed:
            self._failed(failed)
            return [[] for _ in passages]

    async def labels_of(self, texts: Sequence[str]) -> list[list[Finding]]:
        """A label is about a whole text, so its finding is too."""
        wanted = tuple(self.inspection.policy.labels)
        if not wanted:
            return [[] for _ in texts]
        try:
            scores = await self.detectors.semantic(texts, wanted)
        except TierFailed as failed:
            self._failed(failed)
            return [[] for _ in texts]
        return [
            [Finding(0, len(text), label, score, label) for label, score in told.items()]
            for text, told in zip(texts, scores, strict=True)
        ]

    def _failed(self, failed: TierFailed) -> None:
        closed = self.options.fail_mode == "closed"
        self.inspection.note_failure(failed.tier, failed.reason, blocked=closed, direction=self.direction)
        if closed:
            self.inspection.did("BLOCK")
            raise DlpUnavailable(headers={"X-DLP-Action": "BLOCK", "Retry-After": "5"})


def shifted(findings: Sequence[Finding], offset: int) -> list[Finding]:
    if not offset:
        return list(findings)
    return [Finding(f.start + offset, f.end + offset, f.entity_type, f.score, f.source) for f in findings]
