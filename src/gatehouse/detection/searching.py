"""RE2's search over bytes, as fast as the library has it.

The methods of `re2` itself make an object for each match and convert its positions to code points, which takes several
times as long as the search. Its C++ class is no public part of the package, so it is used in this module alone.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import re2

#: The bytes of all groups of a match, the whole one first; -1 where there is none.
Spans: TypeAlias = Sequence[tuple[int, int]]
#: From where in a text a match may begin: `ANYWHERE` or `HERE`; the text; the bytes between which it is searched.
Search: TypeAlias = Callable[[Any, bytes | memoryview, int, int], Spans]

ANYWHERE: Final = re2._re2.RE2.Anchor.UNANCHORED
HERE: Final = re2._re2.RE2.Anchor.ANCHOR_START


def search_of(compiled: Any) -> Search:
    """The search of what `re2.compile` has made."""
    search: Search = compiled._regexp.Match
    return search


def not_empty(search: Search, character: Search) -> Search:
    """`search` without its empty matches. `character` finds one character that others may begin with."""

    def found(anchor: Any, data: bytes | memoryview, start: int, end: int) -> Spans:
        spans = search(anchor, data, start, end)
        while anchor is ANYWHERE and spans[0][0] == spans[0][1] >= 0:
            place = character(ANYWHERE, data, spans[0][0] + 1, end)[0][0]
            if place < 0:
                break
            spans = search(ANYWHERE, data, place, end)
        return spans if spans[0][0] < spans[0][1] else ((-1, -1),) * len(spans)

    return found
