"""A text that arrives in pieces: what is found in it, and up to where it may be passed on.

`Scanner` finds what the whole text would give, however it is cut. Three places move forward through the text:

- *settled*: every match that begins before it is known and final. It stays the longest match of the shapes without an
  `opening` behind the end, and behind an `opening` until its shape has all the text that it could match. It is measured
  in characters of the view: padding that is not drawn does not move it.
- *released*: never behind settled, and never within findings that overlap.
- the *tail*: what is kept, so much before settled as a match or a context word needs to see.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from gatehouse.detection.candidates import NEAR
from gatehouse.detection.findings import Finding
from gatehouse.detection.normalise import View, characters, escapes, joined, seen
from gatehouse.detection.pattern import CONTEXT_BEFORE
from gatehouse.detection.rules import Chain, Region, Rules

#: Fewer new code points than this are not worth a look.
STEP: Final = 32
#: What decides about a match before its beginning. Joined, each character may have had a line break beside it.
_BEFORE: Final = 3 * CONTEXT_BEFORE + characters.REACH + joined.REACH


class Scanner:
    """`push` what has come, `advance` for what is final. `start`: matches begin there or later; offsets count from the
    beginning of all that was pushed."""

    def __init__(self, rules: Sequence[Rules], *, json_escapes: bool = False, start: int = 0) -> None:
        self._rules = rules
        self._json_escapes = json_escapes
        self._tail = ""
        self._base = 0
        self._settled = start
        self._released = 0
        self._due = STEP
        self._pending: list[Finding] = []
        #: for each matcher, over the text and over the text without line breaks
        self._chains = [(Chain(), Chain()) for _ in rules]

    def push(self, text: str) -> None:
        self._tail += text

    def advance(self, *, final: bool) -> tuple[list[Finding], int]:
        """Findings that became final, by their beginning, and up to where the text may be passed on."""
        if not final and len(self._tail) < self._due:
            return [], self._released
        view = self._view(final=final)
        breaks = joined.breaks(view)
        settled = self._settle(view, final=final)
        through: View | None = None
        seams: list[int] = []
        if breaks:
            through, seams = joined.joined(view, breaks)
            settled = min(settled, self._settle(through, final=final))
        if settled > self._settled or final:
            self._search(view, through, seams, settled, final=final)
            self._settled = settled
            if not final:
                self._trim(view)
        # Each look costs as much as the tail is long: looks are so far apart that the whole stays linear.
        self._due = len(self._tail) + max(STEP, len(self._tail) // 8)
        return self._release(final=final)

    def _view(self, *, final: bool) -> View:
        whole = self._tail if final or not self._json_escapes else self._tail[: escapes.begun(self._tail)]
        return seen(whole, json_escapes=self._json_escapes)

    def _settle(self, view: View, *, final: bool) -> int:
        if final:
            return self._base + len(self._tail)
        end = characters.unsettled(view)
        first = view.at(max(0, self._settled - self._base))
        settled = min((each.openings.settled(view, first, end) for each in self._rules), default=end)
        return (
            self._settled if settled <= 0 else max(self._settled, self._base + view.start_of(settled, len(self._tail)))
        )

    def _search(self, view: View, through: View | None, seams: list[int], settled: int, *, final: bool) -> None:
        first, last = max(0, self._settled - self._base), settled - self._base
        found: Found = {by_place(finding): finding for finding in self._pending}
        for rules, (plain, over_breaks) in zip(self._rules, self._chains, strict=True):
            region = Region(view.at(first), view.at(last), len(view))
            keep(found, self._look(rules, view, (region,), plain, final=final))
            if through is not None:
                over = regions(seams, through.at(first), through.at(last), len(through), width=2, longest=NEAR)
                keep(found, _unless_whole(self._look(rules, through, over, over_breaks, final=final), found))
        self._pending = sorted(found.values(), key=by_place)

    def _look(self, rules: Rules, view: View, over: Iterable[Region], chain: Chain, *, final: bool) -> list[Finding]:
        behind = chain.over(view)
        found = rules.findings(view, over, behind, self._base)
        if not final:
            chain.keep(behind, view, len(self._tail))
        return found

    def _trim(self, view: View) -> None:
        needed = view.at(max(0, self._settled - self._base)) - _BEFORE
        if needed <= 0:
            return
        gone = view.start_of(needed, len(self._tail))
        self._tail = self._tail[gone:]
        self._base += gone
        for chains in self._chains:
            for chain in chains:
                chain.forget(gone, self._settled - self._base)

    def _release(self, *, final: bool) -> tuple[list[Finding], int]:
        cut = self._settled
        if not final:
            start = end = -1
            for finding in self._pending:
                if finding.start < end:
                    end = max(end, finding.end)
                elif finding.start < self._settled:
                    start, end = finding.start, finding.end
            if start < cut < end:
                cut = start
        self._released = max(self._released, cut)
        ready = [finding for finding in self._pending if finding.start < cut or final]
        self._pending = self._pending[len(ready) :]
        return ready, self._released


def by_place(finding: Finding) -> tuple[int, int, str]:
    return finding.start, finding.end, finding.source


#: Findings by place and source: of equal ones by several shapes or in several views the best is kept.
Found: TypeAlias = dict[tuple[int, int, str], Finding]


def keep(found: Found, new: Iterable[Finding]) -> None:
    for finding in new:
        known = found.get(by_place(finding))
        if known is None or known.score < finding.score:
            found[by_place(finding)] = finding


def _unless_whole(crossing: Iterable[Finding], found: Found) -> Iterator[Finding]:
    """Without those that begin in what the same pattern finds on one line: the next line is not part of that."""
    spans: dict[str, list[tuple[int, int]]] | None = None
    for finding in list(crossing):
        if spans is None:
            spans = {}
            for known in found.values():
                spans.setdefault(known.source, []).append((known.start, known.end))
        if not any(start <= finding.start < end for start, end in spans.get(finding.source, ())):
            yield finding


def regions(
    seams: Sequence[int], first: int, last: int, end: int, *, width: int = 1, longest: int = sys.maxsize
) -> Iterator[Region]:
    """Where a match over one of `seams` may begin, no more than `NEAR` characters before it, between `first` and `last`
    of a view that is known to `end`."""
    place = bisect_left(seams, first)
    while place < len(seams) and seams[place] - NEAR < last:
        begin, stop = seams[place] - NEAR, seams[place] + 1
        own = place
        place += 1
        while place < len(seams) and seams[place] - NEAR <= stop:
            stop = seams[place] + 1
            place += 1
        begin, stop = max(begin, first), min(stop, last)
        if begin < stop:
            yield Region(begin, stop, min(end, stop + NEAR + 2), longest, seams[own:place], width)
