"""Iterates over the matches of one regex with RE2's semantics: leftmost match, first branch, no overlaps, none empty.

To decide whether a match is final, a search may have to read far beyond it, again for each match: `a.*b|a` reads for
each `a` to the end of the line. Texts are therefore searched in windows that grow while the match in them is undecided,
and the bytes of all windows count against a budget.
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

#: Budget of one pattern in a text: searched bytes for each byte of the text, and a minimum.
SEARCHED_BYTES_PER_BYTE: Final = 64
MIN_SEARCHED_BYTES: Final = 1 << 20
#: Bytes of the first window after a match, and of the largest one in which no match has begun.
_MIN_WINDOW_BYTES: Final = 64
_MAX_WINDOW_BYTES: Final = 64 << 10
#: While a match of more than `_MIN_LONG_MATCH_BYTES` is undecided, each byte of it counts once for each
#: `_INSTRUCTIONS_PER_CHARGE` RE2 instructions.
_MIN_LONG_MATCH_BYTES: Final = 4 << 10
_INSTRUCTIONS_PER_CHARGE: Final = 64
#: Bytes of the first window in a stream, which seldom holds back more.
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
    """The searches of a regex. `unfinished` is that of `re2_syntax.unfinished` with its number of `instructions`.
    `character` matches one character with which a match may begin; None if no match is empty."""

    regex: Search
    unfinished: Search
    instructions: int
    character: Search | None

    def after_empty(self, place: int, data: bytes | memoryview, end: int) -> int:
        """Return the position after an empty match at `place` where a nonempty one may begin, or `end`."""
        assert self.character is not None
        begin = self.character(ANYWHERE, data, place + 1, end)[0][0]
        return begin if begin >= 0 else end


def matches(searches: Searches, data: bytes | memoryview, place: int, budget: WalkBudget) -> Iterator[Spans | None]:
    """Yield the matches in a whole text from `place` on, and None if the search continues: each step takes some
    milliseconds at most. Raises `SearchBudgetExceeded`."""
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
            # Undecided: the match may continue.
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
    """Iterates over the matches in a stream's text, which is known up to `end`. `whole`: the text is complete. Matches
    are limited to `STREAM_MAX_CHARACTERS` characters. After `next` returned None, `alive` is the position from which a
    match may still begin."""

    def __init__(self, searches: Searches, view: View, end: int, *, whole: bool) -> None:
        self._searches = searches
        self._view = view
        self._data = view.data
        self._end = end
        self._whole = whole
        self.alive = end

    def next(self, place: int) -> Spans | None:
        """Return the first match from `place` on."""
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
        """Return the first match, which may be empty or too long."""
        data, end = self._data, self._end
        size = _STREAM_WINDOW_BYTES
        while place < end:
            stop = next_character(data, place + size, end)
            if stop == end and self._whole:
                spans = self._searches.regex(ANYWHERE, data, place, end)
                return spans if spans[0][0] >= 0 else None
            spans = self._searches.unfinished(ANYWHERE, memoryview(data)[:stop], place, stop)
            begin, match_end = spans[0]
            # The exact length of a match that is too long is irrelevant.
            if match_end < stop or not self._within(begin, stop):
                return spans
            if stop == end:
                self.alive = begin
                return None
            place = begin
            size *= 2
        return None

    def _within(self, begin: int, stop: int) -> bool:
        """Return whether a match is no longer than a stream examines."""
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
