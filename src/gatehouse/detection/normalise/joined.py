"""Numbers and tokens that a line break goes through."""

from typing import Final

import numpy as np
import re2

from gatehouse.detection.normalise.view import Offsets, View
from gatehouse.detection.searching import ANYWHERE, search_of
from gatehouse.detection.separator import BETWEEN_TEXTS, SEPARATOR

#: How far behind a break, in characters, decides whether it is one.
REACH: Final = 26

_LETTERS: Final = "[A-Za-z_.+/=-]"
_PART: Final = "[0-9A-Za-z_.+/=-]"
#: The last before a break: behind `=` a token has ended, or its value begins.
_LAST: Final = "[0-9A-Za-z_.+/-]"
#: Both sides are of one token: digits on both, or digits and letters mixed on one, or what only an identifier has.
#: Two words of prose are not joined, nor a word and the number that ends or begins the next line.
_BREAK_PATTERN: Final = re2.compile(
    "|".join(
        (
            r"[0-9A-Z)] ?\r?\n ?(?:[0-9]|[A-Z]{1,24}\b)",
            r"[0-9A-Fa-f:]\r?\n[:-][0-9A-Fa-f]",
            rf"[0-9@]{_LETTERS}{{0,23}}[A-Za-z_.+/-]\r?\n{_PART}",
            rf"[A-Za-z]{_PART}{{0,24}}[0-9@]\r?\n[A-Za-z]",
            rf"{_LAST}\r?\n[0-9]{{1,24}}{_LETTERS}",
            rf"{_LAST}\r?\n{_LETTERS}{{1,24}}[0-9@]",
            r"[A-Za-z]\r?\n[A-Za-z]{0,24}[a-z][A-Z]",
            r"\.[A-Za-z]{1,24}\r?\n[A-Za-z]{1,24}\.[0-9A-Za-z]",
            r"[0-9]\r?\n[A-Z]{1,24}\b",
        )
    ).encode()
)
_next_break: Final = search_of(_BREAK_PATTERN)
#: The end of a text that may become one of these.
_begun: Final = search_of(re2.compile(rb"(?:[0-9A-Za-z_.+/=:)@-] ?(?:\r?\n ?[0-9A-Za-z_.+/=:-]{0,25})|\r)\z"))
_LONGEST_BEGUN: Final = 32
#: How far before its line break one of these begins, in bytes.
_BEFORE: Final = 28
_SEPARATORS: Final = (SEPARATOR.encode(), BETWEEN_TEXTS.encode())


def breaks(view: View, since: int = 0) -> list[int]:
    """The characters that are such line breaks, in order."""
    found: list[int] = []
    data = view.data
    place = view.byte(since)
    first = data.find(b"\n", place)
    # What stands between the texts of a body: a search for each would go through all of it.
    while first >= 0 and data.startswith(_SEPARATORS, first):
        first = data.find(b"\n", data.index(b"\n", first + 1) + 1)
    if first < 0:
        return found
    place = max(place, first - _BEFORE)
    while (start := _next_break(ANYWHERE, data, place, len(data))[0][0]) >= 0:
        place = data.index(b"\n", start)
        found.append(view.character(place))
        place += 1
    return found


def begun(view: View, end: int) -> int:
    """The character, before `end`, with which a line break begins that what follows decides about, or `end`."""
    size = view.byte(end)
    data = view.data[max(0, size - _LONGEST_BEGUN) : size]
    if b"\n" not in data and b"\r" not in data:
        return end
    start = _begun(ANYWHERE, data, 0, len(data))[0][0]
    if start < 0:
        return end
    found = data.find(b"\r", start)
    place = data.index(b"\n", start) if found < 0 else found
    return view.character(size - len(data) + place)


def joined(view: View, at: list[int]) -> tuple[View, list[int]]:
    """`view` without the breaks `at`, and the character before each of them."""
    gone: list[int] = []
    seams: list[int] = []
    for place in at:
        if view.text[place - 1] == "\r":
            gone.append(place - 1)
        gone.append(place)
        seams.append(place - len(gone))
    offsets: Offsets = np.array(gone, dtype=np.int64)
    return view.without(offsets), seams
