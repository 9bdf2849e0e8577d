"""What a tier found, and where."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

import msgspec


class Finding(msgspec.Struct, frozen=True, gc=False):
    """`start` and `end` are Unicode code points of the caller's own text, never of a view of it. `score` is 0.0 to 1.0.

    `source` is what found it: the id of a pattern, the name of a recogniser, a label of the semantic tier.
    """

    start: int
    end: int
    entity_type: str
    score: float
    source: str


#: Where a finding is, and whose: start, end, source.
Place: TypeAlias = tuple[int, int, str]


def by_place(finding: Finding) -> Place:
    return finding.start, finding.end, finding.source


#: Findings by place and source: of equal ones by several shapes or in several views the best is kept.
Found: TypeAlias = dict[Place, Finding]


def keep(found: Found, new: Iterable[Finding]) -> None:
    for finding in new:
        known = found.get(by_place(finding))
        if known is None or known.score < finding.score:
            found[by_place(finding)] = finding


class Known:
    """Findings by their pattern, each after the other."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._spans: dict[str, tuple[list[int], list[int]]] = {}
        for finding in sorted(findings, key=by_place):
            starts, ends = self._spans.setdefault(finding.source, ([], []))
            starts.append(finding.start)
            ends.append(finding.end)

    def covers(self, finding: Finding) -> bool:
        """Whether one of the same pattern holds where `finding` begins."""
        starts, ends = self._spans.get(finding.source, ((), ()))
        place = bisect_right(starts, finding.start) - 1
        return place >= 0 and finding.start < ends[place]
