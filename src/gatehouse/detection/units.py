"""Divides a text into units of one or a few sentences. The model reads each unit separately.

The end of a unit depends only on the text of the unit and a few code points after it. Later text never changes a unit,
so a stream can be divided as it arrives. Very short sentences are combined, because names are hard to recognise without
surrounding words.
"""

import re
from collections.abc import Iterator
from typing import Final

#: Minimum code points of a unit. A unit ends at the first end of a sentence after this number.
MIN_UNIT_CHARACTERS: Final = 80
#: Maximum code points of a unit. If no sentence ends before this number, the unit ends at the last space before it.
MAX_UNIT_CHARACTERS: Final = 600

_ABBREVIATED_WORDS: Final = (
    "mr mrs ms dr prof rev hon st sr jr gen col sgt capt lt gov sen rep pres inc ltd co corp bros no nos vs etc e.g "
    "i.e al fig approx dept est univ mt ft ave blvd rd str apt ste jan feb mar apr jun jul aug sep sept oct nov dec "
    "u.s u.k a.m p.m ph.d hr fr art vol ed eds pp messrs"
)
_ABBREVIATIONS: Final = frozenset(_ABBREVIATED_WORDS.split())
#: The end of a sentence: an end mark with closing punctuation before white space, a line break, or a full-width end
#: mark, which needs no white space.
_END: Final = re.compile(r"[.!?\u2026]+[\"'\u2019\u201d)\]]*(?=\s)|\n|[\u3002\uff01\uff1f]")
_LAST_WORD: Final = re.compile(r"[\w.]*\Z")
#: Code points after a unit that are needed to know that it has ended.
_LOOKAHEAD_CHARACTERS: Final = 2


def units(text: str, *, final: bool = True) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each unit, in order. The units together cover the complete text. If the text is
    incomplete (`final` is false), yield only the units that can no longer change."""
    start = 0
    while start < len(text):
        end = _end_of_unit(text, start)
        if not final and end + _LOOKAHEAD_CHARACTERS > len(text):
            return
        yield start, end
        start = end


def _end_of_unit(text: str, start: int) -> int:
    limit = start + MAX_UNIT_CHARACTERS
    for mark in _END.finditer(text, start + MIN_UNIT_CHARACTERS - 1, limit + 1):
        if mark.end() <= limit and not _is_abbreviation(text, start, mark):
            return mark.end()
    if len(text) <= limit:
        return len(text)
    space = max(
        text.rfind(" ", start + MIN_UNIT_CHARACTERS, limit), text.rfind("\t", start + MIN_UNIT_CHARACTERS, limit)
    )
    return space + 1 if space > 0 else limit


def _is_abbreviation(text: str, start: int, mark: re.Match[str]) -> bool:
    if mark.group() != ".":
        return False
    match = _LAST_WORD.search(text, max(start, mark.start() - 12), mark.start())
    word = match.group().lower() if match else ""
    return (len(word) == 1 and word.isalpha()) or word in _ABBREVIATIONS
