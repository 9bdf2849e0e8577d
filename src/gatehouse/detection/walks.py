"""From match to match of one regex, as RE2 finds them: leftmost, the first branch first, without overlaps, none empty.

To know that a match is the right one, a search may have to read far behind it, again for each match: `a.*b|a` reads
for each `a` to the end of the line. So texts are searched in windows that grow while the match in them is undecided,
and the bytes of all windows are counted.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from gatehouse.detection.normalise import View
from gatehouse.detection.pattern import STREAM_MAX_LENGTH
from gatehouse.detection.searching import ANYWHERE, HERE, Search, Spans

#: Bytes that are searched for one pattern in a text: so many for each of the text's, and so many in any case.
BYTES_A_BYTE: Final = 64
LEAST_BYTES: Final = 1 << 20
#: Bytes of the first window behind a match, and of the largest one in which no match has begun.
_WINDOW: Final = 64
_LARGEST: Final = 64 << 10
#: While a longer match is undecided, each byte of it counts once for so many of RE2's instructions.
_LONG: Final = 4 << 10
_INSTRUCTIONS: Final = 64
#: The first window in a stream: what is held back is seldom longer.
_STREAM_WINDOW: Final = 4096


class Spent(Exception):
    """The search would read more than it may."""


class Budget:
    """The bytes that may be searched for one pattern in `size` bytes of text."""

    def __init__(self, size: int) -> None:
        self._left = BYTES_A_BYTE * size + LEAST_BYTES

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Spent


class Searches(NamedTuple):
    """A regex's. `unfinished` is that of `re2_syntax.unfinished`, of so many `instructions`. `character` finds one
    character that a match may begin with; None where no match is empty."""

    regex: Search
    unfinished: Search
    instructions: int
    character: Search | None

    def behind_empty(self, place: int, data: bytes | memoryview, end: int) -> int:
        """Where behind an empty match at `place` one may begin that is not, or `end`."""
        assert self.character is not None
        begin = self.character(ANYWHERE, data, place + 1, end)[0][0]
        return begin if begin >= 0 else end


def matches(searches: Searches, data: bytes | memoryview, place: int, budget: Budget) -> Iterator[Spans | None]:
    """Those in a whole text from `place` on, and None where the search goes on: each step takes some milliseconds at
    most. Raises `Spent`."""
    end, size = len(data), _LARGEST
    while place < end:
        stop = next_character(data, place + size, end)
        budget.take(stop - place)
        if stop == end:
            spans = searches.regex(ANYWHERE, data, place, stop)
        else:
            spans = searches.unfinished(ANYWHERE, memoryview(data)[:stop], place, stop)
        begin, behind = spans[0]
        if stop < end and behind == stop:
            # Undecided: a match that has begun may go on.
            if stop - begin > _LONG:
                budget.take((stop - begin) * (searches.instructions // _INSTRUCTIONS))
            size = max(min(2 * size, _LARGEST), 2 * (stop - begin))
            place = begin
            yield None
        elif begin < 0:
            return
        else:
            size = _WINDOW
            yield spans if begin < behind else None
            place = behind if begin < behind else searches.behind_empty(begin, data, end)


class StreamWalk:
    """Through what is known of a stream's text, up to `end`; `whole`: all of it is. A match is what the regex matches
    in `STREAM_MAX_LENGTH` characters. `alive` is from where on a match may still come, where `next` gave None."""

    def __init__(self, searches: Searches, view: View, end: int, *, whole: bool) -> None:
        self._searches = searches
        self._view = view
        self._data = view.data
        self._end = end
        self._whole = whole
        self.alive = end

    def next(self, place: int) -> Spans | None:
        """The first match from `place` on."""
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
                place = self._searches.behind_empty(begin, self._data, self._end)
        return None

    def _search(self, place: int) -> Spans | None:
        """The first match, which may be empty or too long."""
        data, end = self._data, self._end
        size = _STREAM_WINDOW
        while place < end:
            stop = next_character(data, place + size, end)
            if stop == end and self._whole:
                spans = self._searches.regex(ANYWHERE, data, place, end)
                return spans if spans[0][0] >= 0 else None
            spans = self._searches.unfinished(ANYWHERE, memoryview(data)[:stop], place, stop)
            begin, behind = spans[0]
            # Of one that is too long it does not matter how long it is.
            if behind < stop or not self._within(begin, stop):
                return spans
            if stop == end:
                self.alive = begin
                return None
            place = begin
            size *= 2
        return None

    def _within(self, begin: int, stop: int) -> bool:
        """Whether a match from `begin` to `stop` is no longer than a stream looks at."""
        if stop - begin <= STREAM_MAX_LENGTH:
            return True
        return self._view.character(stop) - self._view.character(begin) <= STREAM_MAX_LENGTH

    def _limited(self, begin: int) -> Spans:
        end = self._view.byte(self._view.character(begin) + STREAM_MAX_LENGTH)
        return self._searches.regex(HERE, self._data, begin, end)


def next_character(data: bytes | memoryview, place: int, end: int) -> int:
    """The first place from `place` on at which a character begins, or `end`."""
    while place < end and data[place] & 0xC0 == 0x80:
        place += 1
    return min(place, end)
