"""What a stream's end may still become part of."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import re2

from gatehouse.detection import matching
from gatehouse.detection.normalise import View, joined
from gatehouse.detection.pattern import CONTEXT_AFTER
from gatehouse.detection.searching import ANYWHERE, Search, search_of

#: What decides about a match behind its end, in characters: `\b`, context words, whether a line break is one to join.
AHEAD: Final = max(CONTEXT_AFTER, joined.REACH) + 2


class Reach(NamedTuple):
    """Of one shape: how long a match is at most, the literal that each one begins with, and whether in a word."""

    max_length: int
    opening: str | None
    in_word: bool


class Openings:
    """`window` characters behind the end are not settled: the longest match of the shapes without an opening. Longer
    shapes begin with an opening, and nothing behind one is settled until its shape has all that it could match."""

    def __init__(self, reaches: Iterable[Reach], *, splits_at_underscore: bool = False) -> None:
        reaches = list(reaches)
        self._splits = splits_at_underscore
        #: characters of the longest match of the shapes without an opening
        self.longest_without = max((each.max_length for each in reaches if each.opening is None), default=0)
        self.window = self.longest_without + AHEAD
        # Characters by opening, of the openings as they are written at the beginning of a word or anywhere.
        lengths: dict[str, int] = {}
        written: dict[str, bool] = {}
        for max_length, opening, in_word in reaches:
            if opening is not None and max_length + AHEAD > self.window:
                known = opening.lower()
                lengths[known] = max(lengths.get(known, 0), max_length + AHEAD)
                written[known] = written.get(known, False) or in_word
        #: the longest of those that may begin with the same letters
        self._needed = {
            opening: max(
                length for other, length in lengths.items() if other.startswith(opening) or opening.startswith(other)
            )
            for opening in lengths
        }
        self._longest = max(lengths.values(), default=0)
        self._search: Search | None = None
        if written:
            anyone = "|".join(("" if inside else r"\b") + re2.escape(opening) for opening, inside in written.items())
            if splits_at_underscore:
                anyone = matching.split_at_underscores(anyone)
            self._search = search_of(re2.compile(anyone.encode(), matching.options(ignore_case=True)))

    def settled(self, view: View, first: int, end: int) -> int:
        """Up to which character `view` is settled, if it is to `first` and its characters are known up to `end`."""
        settled = end - self.window
        if self._search is None or settled <= first:
            return settled
        data = self._searched(view)
        place, last = view.byte(max(first, end - self._longest)), view.byte(settled)
        while place < last:
            start, stop = self._search(ANYWHERE, data, place, len(data))[0]
            if not 0 <= start < last:
                break
            begin = view.character(start)
            if begin + self._needed.get(view.data[start:stop].decode().lower(), self._longest) > end:
                return begin
            place = start + 1
        return settled

    def opened(self, view: View) -> bool:
        """Whether one of the longest shapes may begin in `view`."""
        return self._search is not None and self._search(ANYWHERE, self._searched(view), 0, len(view.data))[0][0] >= 0

    def _searched(self, view: View) -> bytes:
        return view.data.translate(matching.UNDERSCORES) if self._splits else view.data
