"""Computes a view in which numbers and tokens are not interrupted by line breaks."""

from typing import Final

import numpy as np
import re2

from gatehouse.detection.normalise.view import Offsets, View
from gatehouse.detection.regex.byte_search import ANYWHERE, search_of
from gatehouse.detection.separator import BETWEEN_TEXTS, SEPARATOR

#: Number of characters after a line break that decide whether the break is within a value.
LOOKAHEAD_CHARACTERS: Final = 26

_LETTERS: Final = "[A-Za-z_.+/=-]"
_PART: Final = "[0-9A-Za-z_.+/=-]"
#: The last character before a break. `=` is not included, because it ends a token or precedes its value.
_LAST_CHARACTER: Final = "[0-9A-Za-z_.+/-]"
#: A line break within a token. Both sides have digits, or one side mixes digits and letters, or both sides together
#: have a form that only identifiers have. Two words of prose are not joined, and neither are a lower-case word and a
#: plain number.
_BREAK_PATTERN: Final = re2.compile(
    "|".join(
        (
            r"[0-9A-Z)] ?\r?\n ?(?:[0-9]|[A-Z]{1,24}\b)",
            r"[0-9A-Fa-f:]\r?\n[:-][0-9A-Fa-f]",
            rf"[0-9@]{_LETTERS}{{0,23}}[A-Za-z_.+/-]\r?\n{_PART}",
            rf"[A-Za-z]{_PART}{{0,24}}[0-9@]\r?\n[A-Za-z]",
            rf"{_LAST_CHARACTER}\r?\n[0-9]{{1,24}}{_LETTERS}",
            rf"{_LAST_CHARACTER}\r?\n{_LETTERS}{{1,24}}[0-9@]",
            r"[A-Za-z]\r?\n[A-Za-z]{0,24}[a-z][A-Z]",
            r"\.[A-Za-z]{1,24}\r?\n[A-Za-z]{1,24}\.[0-9A-Za-z]",
            r"[0-9]\r?\n[A-Z]{1,24}\b",
        )
    ).encode()
)
_next_break: Final = search_of(_BREAK_PATTERN)
#: The end of an incomplete text that may be the beginning of a match of `_BREAK_PATTERN`.
_begun: Final = search_of(re2.compile(rb"(?:[0-9A-Za-z_.+/=:)@-] ?(?:\r?\n ?[0-9A-Za-z_.+/=:-]{0,25})|\r)\z"))
_MAX_INCOMPLETE_BYTES: Final = 32
#: Maximum bytes before the line break in a match of `_BREAK_PATTERN`.
_MAX_BYTES_BEFORE_BREAK: Final = 28
_SEPARATORS: Final = (SEPARATOR.encode(), BETWEEN_TEXTS.encode())


def breaks(view: View, since: int = 0) -> list[int]:
    """Return the positions of the line breaks within tokens, from character `since` on, in order."""
    positions: list[int] = []
    data = view.data
    place = view.byte(since)
    first = data.find(b"\n", place)
    # Separators between texts are skipped, because a search from each of them could read all texts that follow.
    while first >= 0 and data.startswith(_SEPARATORS, first):
        first = data.find(b"\n", data.index(b"\n", first + 1) + 1)
    if first < 0:
        return positions
    place = max(place, first - _MAX_BYTES_BEFORE_BREAK)
    while (start := _next_break(ANYWHERE, data, place, len(data))[0][0]) >= 0:
        place = data.index(b"\n", start)
        positions.append(view.character(place))
        place += 1
    return positions


def begun(view: View, end: int) -> int:
    """Return the position of a line break before `end` if the text after `end` decides whether the line break is within
    a token. Return `end` if there is no such line break."""
    size = view.byte(end)
    data = view.data[max(0, size - _MAX_INCOMPLETE_BYTES) : size]
    if b"\n" not in data and b"\r" not in data:
        return end
    start = _begun(ANYWHERE, data, 0, len(data))[0][0]
    if start < 0:
        return end
    carriage_return = data.find(b"\r", start)
    place = data.index(b"\n", start) if carriage_return < 0 else carriage_return
    return view.character(size - len(data) + place)


def joined(view: View, at: list[int]) -> tuple[View, list[int]]:
    """Return `view` without the line breaks at the positions `at`, and the position of the character before each
    removed line break."""
    removed: list[int] = []
    seams: list[int] = []
    for place in at:
        if view.text[place - 1] == "\r":
            removed.append(place - 1)
        removed.append(place)
        seams.append(place - len(removed))
    offsets: Offsets = np.array(removed, dtype=np.int64)
    return view.without(offsets), seams
