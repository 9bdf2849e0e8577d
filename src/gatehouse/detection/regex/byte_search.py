"""Calls RE2's search over bytes directly, without the overhead of its Python wrapper.

The methods of `re2` create an object for each match and convert its positions to code points. This takes several times
as long as the search. The wrapped C++ class is not a public part of the package, so only this module uses it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import re2

#: The byte ranges of all groups of a match. The first range is the complete match. A group without a match has -1.
Spans: TypeAlias = Sequence[tuple[int, int]]
#: A search function. Its arguments are: where a match may begin (`ANYWHERE`, or `HERE` for only the first byte of the
#: range), the text, and the start and end of the byte range that is searched.
Search: TypeAlias = Callable[[Any, bytes | memoryview, int, int], Spans]

ANYWHERE: Final = re2._re2.RE2.Anchor.UNANCHORED
HERE: Final = re2._re2.RE2.Anchor.ANCHOR_START


def search_of(compiled: Any) -> Search:
    """Return the search function of a compiled regex."""
    search: Search = compiled._regexp.Match
    return search


def not_empty(search: Search, character: Search) -> Search:
    """Return a search that skips the empty matches of `search`. `character` searches for one character with which a
    nonempty match may begin."""

    def nonempty_search(anchor: Any, data: bytes | memoryview, start: int, end: int) -> Spans:
        spans = search(anchor, data, start, end)
        while anchor is ANYWHERE and spans[0][0] == spans[0][1] >= 0:
            place = character(ANYWHERE, data, spans[0][0] + 1, end)[0][0]
            if place < 0:
                break
            spans = search(ANYWHERE, data, place, end)
        return spans if spans[0][0] < spans[0][1] else ((-1, -1),) * len(spans)

    return nonempty_search
