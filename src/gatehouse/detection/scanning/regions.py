"""Computes regions of a derived view. A match that the plain view does not have can begin only in these regions."""

import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from gatehouse.detection.pattern import NEAR_CHARACTERS
from gatehouse.detection.pattern_set import AFTER_ESCAPE, Region


def regions_near_escapes(
    escaped: Sequence[int], first: int, last: int, end: int, *, reach: int, since: int
) -> Iterator[Region]:
    """Yield the regions between `first` and `last` in which a match that an escape affects may begin.

    The view is known up to `end`. `escaped` are the positions of the decoded escapes. In the plain view, a letter of
    the escape is next to the match or next to a context word, so the match may be missing there. A match may begin up
    to `reach` characters before an escape. Matches that begin before `since` are already known."""
    begin = stop = -1
    for escape in escaped[bisect_left(escaped, first - AFTER_ESCAPE) :]:
        if escape - reach >= last:
            break
        if stop >= 0 and escape - reach > stop:
            yield Region(begin, stop, min(end, stop + NEAR_CHARACTERS + 2), since=since, escapes=escaped)
            stop = -1
        if stop < 0:
            begin = max(first, escape - reach)
        stop = min(last, escape + AFTER_ESCAPE)
    if begin < stop:
        yield Region(begin, stop, min(end, stop + NEAR_CHARACTERS + 2), since=since, escapes=escaped)


def regions_around_seams(
    seams: Sequence[int],
    first: int,
    last: int,
    end: int,
    *,
    width: int = 1,
    longest: int = sys.maxsize,
    reach: int = NEAR_CHARACTERS,
) -> Iterator[Region]:
    """Yield the regions between `first` and `last` in which a match that contains one of `seams` may begin. Such a
    match begins at most `reach` characters before the seam. The view is known up to `end`. `longest` and `width` are
    copied into the regions."""
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
            yield Region(begin, stop, min(end, stop + NEAR_CHARACTERS + 2), longest, seams[own:place], width)
