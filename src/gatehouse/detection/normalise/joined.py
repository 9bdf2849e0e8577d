"""Numbers and tokens that a line break goes through."""

from typing import Final

import numpy as np
import re2

from gatehouse.detection.normalise.view import Offsets, View

#: How far behind a break, in characters, decides whether it is one.
REACH: Final = 26

_LETTERS: Final = "[A-Za-z_.+/=-]"
_PART: Final = "[0-9A-Za-z_.+/=-]"
#: The last before a break: behind `=` a token has ended, or its value begins.
_LAST: Final = "[0-9A-Za-z_.+/-]"
#: Both sides are of one token: digits on both, or digits and letters mixed on one, or what only an identifier has.
#: Two words of prose are not joined, nor a word and the number that ends or begins the next line.
_BREAK: Final = re2.compile(
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
)._regexp
#: How far before its line break one of these begins, in bytes.
_BEFORE: Final = 28
#: Between texts that are looked at together: nothing goes over its line breaks, nor does a match of built-in patterns.
SEPARATOR: Final = "\n\x1e\n"
_SEPARATOR: Final = SEPARATOR.encode()
_ANYWHERE: Final = re2._re2.RE2.Anchor.UNANCHORED


def breaks(view: View, since: int = 0) -> list[int]:
    """The characters that are such line breaks, in order."""
    found: list[int] = []
    data = view.data
    place = view.byte(since)
    first = data.find(b"\n", place)
    # What stands between the texts of a body: a search for each would go through all of it.
    while first >= 0 and data.startswith(_SEPARATOR, first):
        first = data.find(b"\n", first + len(_SEPARATOR))
    if first < 0:
        return found
    place = max(place, first - _BEFORE)
    while (start := _BREAK.Match(_ANYWHERE, data, place, len(data))[0][0]) >= 0:
        place = data.index(b"\n", start)
        found.append(view.character(place))
        place += 1
    return found


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
