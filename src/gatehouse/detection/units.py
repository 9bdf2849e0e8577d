"""A text cut into units: one or a few sentences, which the model reads without their neighbours.

A unit is settled by its own text and the few code points behind it, so a stream can be cut as it comes: what a unit
gives never changes with what follows. Very short sentences stay together, since names are hard to tell without words
around them.
"""

import re
from collections.abc import Iterator
from typing import Final

#: A unit ends at the first end of a sentence at or behind this many code points,
SHORTEST: Final = 80
#: and at the last space before this many where no sentence ends.
LONGEST: Final = 600

_SHORTENED: Final = (
    "mr mrs ms dr prof rev hon st sr jr gen col sgt capt lt gov sen rep pres inc ltd co corp bros no nos vs etc e.g "
    "i.e al fig approx dept est univ mt ft ave blvd rd str apt ste jan feb mar apr jun jul aug sep sept oct nov dec "
    "u.s u.k a.m p.m ph.d hr fr art vol ed eds pp messrs"
)
_ABBREVIATIONS: Final = frozenset(_SHORTENED.split())
#: An end mark with what closes behind it and white space; a line's end; an end mark that needs no space.
_END: Final = re.compile(r"[.!?\u2026]+[\"'\u2019\u201d)\]]*(?=\s)|\n|[\u3002\uff01\uff1f]")
_LAST_WORD: Final = re.compile(r"[\w.]*\Z")
#: So much must be there behind a unit to know that it has ended.
_LOOKAHEAD: Final = 2


def units(text: str, *, final: bool = True) -> Iterator[tuple[int, int]]:
    """Start and end of every unit, in order, together the whole text; of a text that still grows (`final` false) those
    that no longer change."""
    start = 0
    while start < len(text):
        end = _end_of_unit(text, start)
        if not final and end + _LOOKAHEAD > len(text):
            return
        yield start, end
        start = end


def _end_of_unit(text: str, start: int) -> int:
    limit = start + LONGEST
    for mark in _END.finditer(text, start + SHORTEST - 1, limit + 1):
        if mark.end() <= limit and not _abbreviated(text, start, mark):
            return mark.end()
    if len(text) <= limit:
        return len(text)
    space = max(text.rfind(" ", start + SHORTEST, limit), text.rfind("\t", start + SHORTEST, limit))
    return space + 1 if space > 0 else limit


def _abbreviated(text: str, start: int, mark: re.Match[str]) -> bool:
    if mark.group() != ".":
        return False
    found = _LAST_WORD.search(text, max(start, mark.start() - 12), mark.start())
    word = found.group().lower() if found else ""
    return (len(word) == 1 and word.isalpha()) or word in _ABBREVIATIONS
