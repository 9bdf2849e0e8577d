"""Computes a view of values whose characters are separated: `4 2 4 2`, `4.2.4.2`, `4-2-4-2`.

A *row* is a sequence of single letters or digits with the same separator between them. Only the few nearest separators
decide whether a character is a separator.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import re2

from gatehouse.detection.normalise.view import Offsets, View
from gatehouse.detection.regex import re2_syntax
from gatehouse.detection.regex.byte_search import ANYWHERE, search_of

#: The separators. Comma and tab are not included, because they separate digits in lists and tables.
_SEPARATORS: Final = (" ", "  ", ".", "-", "_", "*", "|", "/", ":", "~", "+")
#: Minimum characters of a row.
_MIN_ROW_CHARACTERS: Final = 6
#: Characters with which a value may begin.
_VALUE_SIGNS: Final = frozenset("+(")
#: Words of one letter. They do not belong to a row of digits next to them.
_WORDS: Final = frozenset("aI")


def _step(separator: str) -> str:
    """Return a regex for a separator and the next character. The separator character itself may be a character of the
    value; then a separator is on either side of it."""
    one, sign = re.escape(separator), re.escape(separator[0])
    character = r"[^\s]" if separator.isspace() else rf"[^\n{sign}]"
    return rf"(?:{one}{sign}{one}|{one}){character}"


_ANY_ROW: Final = "|".join(
    rf"[0-9A-Za-z](?:{_step(separator)}){{{_MIN_ROW_CHARACTERS - 1},}}" for separator in _SEPARATORS
)
#: Matches each row, with the character before it.
ROWS: Final = f"(?:^|[^0-9A-Za-z])(?:{_ANY_ROW})"
_options = re2.Options()
_options.never_capture = True
_options.longest_match = True
_next_row: Final = search_of(re2.compile(ROWS, _options))
#: Regexes, one for each separator. In each row, one of them matches from the first separator of the row on.
BEGUN_ROWS: Final = tuple(f"(?:{_step(separator)}){{3}}" for separator in _SEPARATORS)
_begun: Final = search_of(
    re2.compile(
        "(?:"
        + "|".join(
            re2_syntax.unfinished(re2_syntax.tokens(rf"{before}[0-9A-Za-z](?:{_step(separator)})*"))
            for separator in _SEPARATORS
            for before in ("(?:^|[^0-9A-Za-z])", rf"[+(]{re.escape(separator)}")
        )
        + r")\z",
        _options,
    )
)
_STEPS: Final = {separator: re.compile(_step(separator)) for separator in _SEPARATORS}


class Spaced(NamedTuple):
    """A view without the separators. `seams` are the positions of the characters after which a separator was removed,
    in order."""

    view: View
    seams: list[int]


def spaced_view(view: View) -> Spaced | None:
    """Return the view without the separators of its rows, or None if it has no rows."""
    removed: list[int] = []
    seams: list[int] = []
    for first, end in _rows(view):
        for start, stop in _gaps(view.text, first, end):
            seams.append(start - len(removed) - 1)
            removed += range(start, stop)
    if not removed:
        return None
    offsets: Offsets = np.array(removed, dtype=np.int64)
    return Spaced(view.without(offsets), seams)


def spaced_begun(view: View, end: int) -> int:
    """Return the position of the second character of a row that may continue after `end`, or `end` if there is none."""
    size = view.byte(end)
    start = _begun(ANYWHERE, view.data[:size], 0, size)[0][0]
    if not 0 <= start < size:
        return end
    first = view.character(start)
    begins = view.text[first] in _VALUE_SIGNS or _is_alphanumeric(view.text[first])
    return min(end, first + 1 + (not begins))


def _rows(view: View) -> Iterator[tuple[int, int]]:
    data, place = view.data, 0
    while (span := _next_row(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        first, end = view.character(span[0]), view.character(span[1])
        # A match includes the character before the row, unless the row is at the beginning of the text.
        yield _with_sign(view.text, first if first == 0 and _is_alphanumeric(view.text) else first + 1), end
        place = view.byte(end - 1)


def _is_alphanumeric(text: str) -> bool:
    return text[0].isascii() and text[0].isalnum()


def _with_sign(text: str, first: int) -> int:
    """Return the start of the row whose first letter or digit is at `first`. A plus or bracket before it belongs to the
    row if the same separator follows it."""
    separator = text[first + 1 : first + 3] if text[first + 2 : first + 3] == " " else text[first + 1]
    before = first - len(separator)
    return before - 1 if before > 0 and text[before:first] == separator and text[before - 1] in _VALUE_SIGNS else first


def _gaps(text: str, first: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the separators of a row. Words of one letter at either end of the row are left out. Return an
    empty list if the rest is too short or is only zeros and ones."""
    separator = text[first + 1]
    after_first = text[first + 1 : end]
    is_double = len(after_first) - len(after_first.lstrip(separator)) in {2, 5}
    step = _STEPS[separator * (1 + is_double)]
    gaps: list[tuple[int, int]] = []
    for match in step.finditer(text, first + 1, end):
        start, stop = match.start(), match.end() - 1
        if stop - start > 1 + is_double:
            middle = start + 1 + is_double
            gaps += ((start, middle), (middle + 1, stop))
        else:
            gaps.append((start, stop))
    if end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end = gaps.pop()[0]
    if separator.isspace():
        if text[end - 1] in _WORDS and text[gaps[-1][0] - 1].isdigit():
            gaps.pop()
        if gaps and text[first] in _WORDS and text[gaps[0][1]].isdigit():
            del gaps[0]
    if len(gaps) < _MIN_ROW_CHARACTERS - 2 or _is_of_bits(text[first : gaps[-1][1] + 1]):
        return []
    return gaps


def _is_of_bits(row: str) -> bool:
    """Return whether the row consists only of zeros and ones, as in a table of bits."""
    return not any(character.isalpha() or character in "23456789" for character in row)
