"""The embedded recognizer. A small network recognizes names, and rules recognize addresses and dates of birth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gatehouse.detection.entities import addresses, births
from gatehouse.detection.entities.network.decoding import KINDS
from gatehouse.detection.entities.network.tagger import Tagger
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import refuse_unknown
from gatehouse.detection.units import units

DATA: Final = Path(__file__).with_name("data")


class EmbeddedRecognizer:
    """The recognizer. Its calls block and use one thread."""

    entities: tuple[str, ...] = (*KINDS, addresses.ENTITY, births.ENTITY)

    def __init__(self, data: Path = DATA) -> None:
        self._tagger = Tagger(data)

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        refuse_unknown(labels, self.entities)
        return [self._read(text) for text in texts]

    def _read(self, text: str) -> list[Finding]:
        findings: list[Finding] = []
        for start, end in units(text):
            findings.extend(moved(finding, start) for finding in self._read_unit(text[start:end]))
        return findings

    def _read_unit(self, unit: str) -> list[Finding]:
        """Return the findings of a unit. If findings of a rule and of the network overlap, only the finding of the rule
        is returned, because rules are more specific."""
        certain = addresses.find(unit)
        certain += [birth for birth in births.find(unit) if not overlaps(birth, certain)]
        names = [name for name in self._tagger.find(unit) if not overlaps(name, certain)]
        return sorted([*certain, *names], key=lambda finding: finding.start)


def overlaps(finding: Finding, others: list[Finding]) -> bool:
    return any(finding.start < other.end and other.start < finding.end for other in others)


def moved(finding: Finding, by: int) -> Finding:
    return Finding(finding.start + by, finding.end + by, finding.entity_type, finding.score, finding.source)
