"""The distance from the end of a stream within which a match may still extend."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import re2

from gatehouse.detection.normalise import View, joined
from gatehouse.detection.pattern import CONTEXT_AFTER
from gatehouse.detection.regex.byte_search import ANYWHERE, Search, search_of
from gatehouse.detection.search import matching

#: Characters after the end of a match that decide about it: `\b`, context words, whether a line break joins lines.
LOOKAHEAD: Final = max(CONTEXT_AFTER, joined.LOOKAHEAD) + 2


class Reach(NamedTuple):
    """Maximum match length of a shape, the literal that begins each match, and whether it may be within a word."""

    max_length: int
    opening: str | None
    in_word: bool


class Openings:
    """Computes which part of a stream is settled. The last `window` characters are not: the longest match of the shapes
    without an opening. Longer shapes begin with an opening, and the text after one is not settled until the longest
    match of its shape has passed."""

    def __init__(self, reaches: Iterable[Reach], *, splits_at_underscore: bool = False) -> None:
        reaches = list(reaches)
        self._splits = splits_at_underscore
        #: characters of the longest match of the shapes without an opening
        self.longest_without_opening = max((reach.max_length for reach in reaches if reach.opening is None), default=0)
        self.window = self.longest_without_opening + LOOKAHEAD
        # Characters by opening; and whether the opening occurs within words too.
        lengths: dict[str, int] = {}
        in_words: dict[str, bool] = {}
        for max_length, opening, in_word in reaches:
            if opening is not None and max_length + LOOKAHEAD > self.window:
                literal = opening.lower()
                lengths[literal] = max(lengths.get(literal, 0), max_length + LOOKAHEAD)
                in_words[literal] = in_words.get(literal, False) or in_word
        #: the longest of those that may begin with the same letters
        self._needed = {
            opening: max(
                length for other, length in lengths.items() if other.startswith(opening) or opening.startswith(other)
            )
            for opening in lengths
        }
        self._longest = max(lengths.values(), default=0)
        self._search: Search | None = None
        if in_words:
            any_opening = "|".join(
                ("" if within_word else r"\b") + re2.escape(opening) for opening, within_word in in_words.items()
            )
            if splits_at_underscore:
                any_opening = matching.split_at_underscores(any_opening)
            self._search = search_of(re2.compile(any_opening.encode(), matching.options(ignore_case=True)))

    def settled(self, view: View, first: int, end: int) -> int:
        """Return up to which character `view` is settled, if it is settled to `first` and known up to `end`."""
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

    def may_begin(self, view: View) -> bool:
        """Return whether one of the longest shapes may begin in `view`."""
        return self._search is not None and self._search(ANYWHERE, self._searched(view), 0, len(view.data))[0][0] >= 0

    def _searched(self, view: View) -> bytes:
        return view.data.translate(matching.UNDERSCORES) if self._splits else view.data
