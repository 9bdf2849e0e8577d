"""Regions of a view in which a match may begin that the plain view does not have."""

import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from gatehouse.detection.pattern import NEAR
from gatehouse.detection.rules import AFTER_ESCAPE, Region


def regions_near_escapes(
    escaped: Sequence[int], first: int, last: int, end: int, *, reach: int, since: int
) -> Iterator[Region]:
    """Yield the regions between `first` and `last` of a view, known up to `end`, in which a match near an escape may
    begin. In the plain view a letter of the escape is next to the match or to a context word. Matches that begin
    before `since` are known already."""
    begin = stop = -1
    for escape in escaped[bisect_left(escaped, first - AFTER_ESCAPE) :]:
        if escape - reach >= last:
            break
        if stop >= 0 and escape - reach > stop:
            yield Region(begin, stop, min(end, stop + NEAR + 2), since=since, beside=escaped)
            stop = -1
        if stop < 0:
            begin = max(first, escape - reach)
        stop = min(last, escape + AFTER_ESCAPE)
    if begin < stop:
        yield Region(begin, stop, min(end, stop + NEAR + 2), since=since, beside=escaped)


def regions_around_seams(
    seams: Sequence[int],
    first: int,
    last: int,
    end: int,
    *,
    width: int = 1,
    longest: int = sys.maxsize,
    reach: int = NEAR,
) -> Iterator[Region]:
    """Yield the regions between `first` and `last` of a view, known up to `end`, in which a match that contains one of
    `seams` may begin: up to `reach` characters before it."""
    place = bisect_left(seams, first)
    while place < len(seams) and seams[place] - reach < last:
        begin, stop = seams[place] - reach, seams[place] + 1
        own = place
        place += 1
        while place < len(seams) and seams[place] - reach <= stop:
            stop = seams[place] + 1
            place += 1
        begin, stop = max(begin, first), min(stop, last)
        if begin < stop:
            yield Region(begin, stop, min(end, stop + NEAR + 2), longest, seams[own:place], width)
