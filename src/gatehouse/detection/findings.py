"""Findings of a detection tier and their positions."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

import msgspec


class Finding(msgspec.Struct, frozen=True, gc=False):
    """A detected value. `start` and `end` count Unicode code points of the caller's text, never of a view of it.
    `score` is between 0.0 and 1.0. `source` identifies the detector: the id of a pattern, the name of a recognizer, or
    a label of the semantic tier."""

    start: int
    end: int
    entity_type: str
    score: float
    source: str


#: Position and detector of a finding: start, end, source.
Place: TypeAlias = tuple[int, int, str]


def by_place(finding: Finding) -> Place:
    return finding.start, finding.end, finding.source


#: Maps each position and source to the finding with the best score. Several shapes and views may find the same value.
FindingsByPlace: TypeAlias = dict[Place, Finding]


def keep_best(kept: FindingsByPlace, new: Iterable[Finding]) -> None:
    """Add `new` findings to `kept`. Of two findings with the same place, keep the one with the better score."""
    for finding in new:
        previous = kept.get(by_place(finding))
        if previous is None or previous.score < finding.score:
            kept[by_place(finding)] = finding


class KnownFindings:
    """Findings that are already known, grouped by pattern and sorted by position."""

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
