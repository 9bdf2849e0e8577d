"""Findings of a tier and their positions."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

import msgspec


class Finding(msgspec.Struct, frozen=True, gc=False):
    """A detected value. `start` and `end` are Unicode code points of the caller's text, never of a view of it. `score`
    is 0.0 to 1.0.

    `source` is the detector: the id of a pattern, the name of a recognizer, or a label of the semantic tier.

    """

    start: int
    end: int
    entity_type: str
    score: float
    source: str


#: Position and detector of a finding: start, end, source.
Place: TypeAlias = tuple[int, int, str]


def by_place(finding: Finding) -> Place:
    return finding.start, finding.end, finding.source


#: Findings by position and source. Of equal ones by several shapes or in several views the best is kept.
Found: TypeAlias = dict[Place, Finding]


def keep(kept: Found, new: Iterable[Finding]) -> None:
    for finding in new:
        previous = kept.get(by_place(finding))
        if previous is None or previous.score < finding.score:
            kept[by_place(finding)] = finding


class Known:
    """Findings by pattern, in order of position."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._spans: dict[str, tuple[list[int], list[int]]] = {}
        for finding in sorted(findings, key=by_place):
            starts, ends = self._spans.setdefault(finding.source, ([], []))
            starts.append(finding.start)
            ends.append(finding.end)

    def covers(self, finding: Finding) -> bool:
        """Return whether a finding of the same pattern covers the start of `finding`."""
        starts, ends = self._spans.get(finding.source, ((), ()))
        index = bisect_right(starts, finding.start) - 1
        return index >= 0 and finding.start < ends[index]
