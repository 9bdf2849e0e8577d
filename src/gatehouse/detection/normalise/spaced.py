"""Values whose characters are set apart: `4 2 4 2`, `4.2.4.2`, `4-2-4-2`.

Local: whether a sign is a separator is settled by the few others of its row that are nearest.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import re2

from gatehouse.detection import re2_syntax
from gatehouse.detection.normalise.view import Offsets, View
from gatehouse.detection.searching import ANYWHERE, search_of

#: Neither the comma nor the tab: lists and tables of digits are written with them.
_SEPARATORS: Final = (" ", "  ", ".", "-", "_", "*", "|", "/", ":", "~", "+")
#: Characters that a row has at least.
_FEWEST: Final = 6
#: What a value may begin with.
_SIGNS: Final = frozenset("+(")
#: Words of one letter, which are no part of the digits beside them.
_WORDS: Final = frozenset("aI")


def _step(separator: str) -> str:
    """A separator and the next character. The value may hold a sign like its separators: then one more stands behind
    it."""
    one, sign = re.escape(separator), re.escape(separator[0])
    character = r"[^\s]" if separator.isspace() else rf"[^\n{sign}]"
    return rf"(?:{one}{sign}{one}|{one}){character}"


_ANY_ROW: Final = "|".join(rf"[0-9A-Za-z](?:{_step(separator)}){{{_FEWEST - 1},}}" for separator in _SEPARATORS)
#: Matches wherever characters are set apart.
ROWS: Final = f"(?:^|[^0-9A-Za-z])(?:{_ANY_ROW})"
_options = re2.Options()
_options.never_capture = True
_options.longest_match = True
_next_row: Final = search_of(re2.compile(ROWS, _options))
#: What every row has within it, from its second character on: regexes.
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
    """A view without the separators, and its characters that one stood behind, in order."""

    view: View
    seams: list[int]


def spaced_view(view: View) -> Spaced | None:
    """None where nothing is set apart."""
    gone: list[int] = []
    seams: list[int] = []
    for first, end in _rows(view):
        for start, stop in _gaps(view.text, first, end):
            seams.append(start - len(gone) - 1)
            gone += range(start, stop)
    if not gone:
        return None
    offsets: Offsets = np.array(gone, dtype=np.int64)
    return Spaced(view.without(offsets), seams)


def spaced_begun(view: View, end: int) -> int:
    """The second character, before `end`, of a row that may have begun, or `end`."""
    size = view.byte(end)
    start = _begun(ANYWHERE, view.data[:size], 0, size)[0][0]
    if not 0 <= start < size:
        return end
    first = view.character(start)
    begins = view.text[first] in _SIGNS or _begins(view.text[first])
    return min(end, first + 1 + (not begins))


def _rows(view: View) -> Iterator[tuple[int, int]]:
    data, place = view.data, 0
    while (span := _next_row(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        first, end = view.character(span[0]), view.character(span[1])
        # A match has the character before the row, too, but for one at the very beginning.
        yield _with_sign(view.text, first if first == 0 and _begins(view.text) else first + 1), end
        place = view.byte(end - 1)


def _begins(text: str) -> bool:
    return text[0].isascii() and text[0].isalnum()


def _with_sign(text: str, first: int) -> int:
    """Where the row begins whose first letter or digit is at `first`: with a plus or a bracket, set apart too."""
    separator = text[first + 1 : first + 3] if text[first + 2 : first + 3] == " " else text[first + 1]
    before = first - len(separator)
    return before - 1 if before > 0 and text[before:first] == separator and text[before - 1] in _SIGNS else first


def _gaps(text: str, first: int, end: int) -> list[tuple[int, int]]:
    """What stands between the characters of a row, without the words on either side of it."""
    sign = text[first + 1]
    behind = text[first + 1 : end]
    twice = len(behind) - len(behind.lstrip(sign)) in {2, 5}
    step = _STEPS[sign * (1 + twice)]
    gaps: list[tuple[int, int]] = []
    for found in step.finditer(text, first + 1, end):
        start, stop = found.start(), found.end() - 1
        if stop - start > 1 + twice:
            middle = start + 1 + twice
            gaps += ((start, middle), (middle + 1, stop))
        else:
            gaps.append((start, stop))
    if end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end = gaps.pop()[0]
    if sign.isspace():
        if text[end - 1] in _WORDS and text[gaps[-1][0] - 1].isdigit():
            gaps.pop()
        if gaps and text[first] in _WORDS and text[gaps[0][1]].isdigit():
            del gaps[0]
    if len(gaps) < _FEWEST - 2 or _is_of_bits(text[first : gaps[-1][1] + 1]):
        return []
    return gaps


def _is_of_bits(row: str) -> bool:
    """Whether it is a row of a table of zeros and ones."""
    return not any(each.isalpha() or each in "23456789" for each in row)
