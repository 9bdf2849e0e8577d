"""Iterates over the nonempty matches of one regex with RE2's semantics: leftmost match, first branch, no overlaps.

To decide whether a match is final, a search may have to read far beyond it, and this may recur for each match. For
example, `a.*b|a` reads to the end of the line for each `a`. A text is therefore searched in windows. A window grows
while its match is undecided, and the bytes of all windows count against a budget.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from gatehouse.detection.normalise import View
from gatehouse.detection.pattern import STREAM_MAX_CHARACTERS
from gatehouse.detection.regex.byte_search import (
    ANYWHERE,
    HERE,
    Search,
    Spans,
)

#: Search budget of one pattern in a text: `SEARCHED_BYTES_PER_BYTE` for each byte of the text, plus
#: `MIN_SEARCHED_BYTES`.
SEARCHED_BYTES_PER_BYTE: Final = 64
MIN_SEARCHED_BYTES: Final = 1 << 20
#: Size of the first window after a match, and maximum size of a window in which no match has begun.
_MIN_WINDOW_BYTES: Final = 64
_MAX_WINDOW_BYTES: Final = 64 << 10
#: While a match of more than `_MIN_LONG_MATCH_BYTES` is undecided, each step also charges the length of the match to
#: the budget, once for every `_INSTRUCTIONS_PER_CHARGE` RE2 instructions of the regex.
_MIN_LONG_MATCH_BYTES: Final = 4 << 10
_INSTRUCTIONS_PER_CHARGE: Final = 64
#: Size of the first window in a stream. A stream seldom holds back more text.
_STREAM_WINDOW_BYTES: Final = 4096


class SearchBudgetExceeded(Exception):
    """The search exceeds its budget."""


class WalkBudget:
    """The bytes that may still be searched for one pattern in `size` bytes of text."""

    def __init__(self, size: int) -> None:
        self._left = SEARCHED_BYTES_PER_BYTE * size + MIN_SEARCHED_BYTES

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise SearchBudgetExceeded


class Searches(NamedTuple):
    """The searches of a regex. `unfinished` searches for the regex that `re2_syntax.unfinished` returns, which has
    `instructions` RE2 instructions. `character` searches for one character with which a match may begin; it is None if
    the regex cannot match the empty text."""

    regex: Search
    unfinished: Search
    instructions: int
    character: Search | None

    def after_empty(self, place: int, data: bytes | memoryview, end: int) -> int:
        """Return the first position after an empty match at `place` where a nonempty match may begin, or `end`."""
        assert self.character is not None
        begin = self.character(ANYWHERE, data, place + 1, end)[0][0]
        return begin if begin >= 0 else end


def matches(searches: Searches, data: bytes | memoryview, place: int, budget: WalkBudget) -> Iterator[Spans | None]:
    """Yield the matches in a complete text from `place` on. Yield None after a step without a match. A step takes at
    most a few milliseconds. Raises `SearchBudgetExceeded`."""
    end, size = len(data), _MAX_WINDOW_BYTES
    while place < end:
        stop = next_character(data, place + size, end)
        budget.take(stop - place)
        if stop == end:
            spans = searches.regex(ANYWHERE, data, place, stop)
        else:
            spans = searches.unfinished(ANYWHERE, memoryview(data)[:stop], place, stop)
        begin, match_end = spans[0]
        if stop < end and match_end == stop:
            # The match is undecided because it may extend beyond the window.
            if stop - begin > _MIN_LONG_MATCH_BYTES:
                budget.take((stop - begin) * (searches.instructions // _INSTRUCTIONS_PER_CHARGE))
            size = max(min(2 * size, _MAX_WINDOW_BYTES), 2 * (stop - begin))
            place = begin
            yield None
        elif begin < 0:
            return
        else:
            size = _MIN_WINDOW_BYTES
            yield spans if begin < match_end else None
            place = match_end if begin < match_end else searches.after_empty(begin, data, end)


class StreamWalk:
    """Iterates over the matches in a stream's text, which is known up to `end`. `whole` means that the text is
    complete. Matches are limited to `STREAM_MAX_CHARACTERS` characters. After `next` has returned None,
    `undecided_from` is the first position at which a match may still begin."""

    def __init__(self, searches: Searches, view: View, end: int, *, whole: bool) -> None:
        self._searches = searches
        self._view = view
        self._data = view.data
        self._end = end
        self._whole = whole
        self.undecided_from = end

    def next(self, place: int) -> Spans | None:
        """Return the first nonempty match from `place` on, or None if there is none or it is undecided."""
        while (spans := self._search(place)) is not None:
            begin, stop = spans[0]
            if not self._within(begin, stop):
                spans = self._limited(begin)
                stop = spans[0][1]
            if begin < stop:
                return spans
            if stop < 0:
                place = next_character(self._data, begin + 1, self._end)
            else:
                place = self._searches.after_empty(begin, self._data, self._end)
        return None

    def _search(self, place: int) -> Spans | None:
        """Return the first match from `place` on, or None. The match may be empty or too long."""
        data, end = self._data, self._end
        size = _STREAM_WINDOW_BYTES
        while place < end:
            stop = next_character(data, place + size, end)
            if stop == end and self._whole:
                spans = self._searches.regex(ANYWHERE, data, place, end)
                return spans if spans[0][0] >= 0 else None
            spans = self._searches.unfinished(ANYWHERE, memoryview(data)[:stop], place, stop)
            begin, match_end = spans[0]
            # A match that is too long is returned without its exact length, because `next` shortens it.
            if match_end < stop or not self._within(begin, stop):
                return spans
            if stop == end:
                self.undecided_from = begin
                return None
            place = begin
            size *= 2
        return None

    def _within(self, begin: int, stop: int) -> bool:
        """Return whether a match has at most `STREAM_MAX_CHARACTERS` characters."""
        if stop - begin <= STREAM_MAX_CHARACTERS:
            return True
        return self._view.character(stop) - self._view.character(begin) <= STREAM_MAX_CHARACTERS

    def _limited(self, begin: int) -> Spans:
        end = self._view.byte(self._view.character(begin) + STREAM_MAX_CHARACTERS)
        return self._searches.regex(HERE, self._data, begin, end)


def next_character(data: bytes | memoryview, place: int, end: int) -> int:
    """Return the first position from `place` on at which a character begins, or `end`."""
    while place < end and data[place] & 0xC0 == 0x80:
        place += 1
    return min(place, end)
