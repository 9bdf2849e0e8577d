"""Computes the distance from the end of a stream within which a match may still extend beyond the end."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import re2

from gatehouse.detection.normalise import View, joined
from gatehouse.detection.pattern import CONTEXT_CHARACTERS_AFTER
from gatehouse.detection.regex.byte_search import ANYWHERE, Search, search_of
from gatehouse.detection.search import matching

#: Number of characters after a match that may affect it. They are examined for `\b`, for context words and for a line
#: break within a value.
LOOKAHEAD_CHARACTERS: Final = max(CONTEXT_CHARACTERS_AFTER, joined.LOOKAHEAD_CHARACTERS) + 2


class Reach(NamedTuple):
    """The maximum match length of a shape, the literal with which each match begins (None if there is none), and
    whether this literal may be within a word."""

    max_length: int
    opening: str | None
    in_word: bool


class Openings:
    """Computes the part of a stream that is settled: no match that begins in it can extend beyond the end.

    The last `window` characters are never settled. `window` is the maximum match length of the shapes without an
    opening, plus `LOOKAHEAD_CHARACTERS`. Shapes with longer matches have an opening. Text from an opening on is settled
    only when the maximum match length of its shapes has arrived after it."""

    def __init__(self, reaches: Iterable[Reach], *, splits_at_underscore: bool = False) -> None:
        reaches = list(reaches)
        self._splits = splits_at_underscore
        #: maximum match length, in characters, of the shapes without an opening
        self.longest_without_opening = max((reach.max_length for reach in reaches if reach.opening is None), default=0)
        self.window = self.longest_without_opening + LOOKAHEAD_CHARACTERS
        # For each opening: the number of characters that must arrive, and whether the opening may be within a word.
        lengths: dict[str, int] = {}
        in_words: dict[str, bool] = {}
        for max_length, opening, in_word in reaches:
            if opening is not None and max_length + LOOKAHEAD_CHARACTERS > self.window:
                literal = opening.lower()
                lengths[literal] = max(lengths.get(literal, 0), max_length + LOOKAHEAD_CHARACTERS)
                in_words[literal] = in_words.get(literal, False) or in_word
        #: for each opening, the maximum of `lengths` over all openings that may match at the same position
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
        """Return the character up to which `view` is settled. The view is known up to `end` and already settled up to
        `first`."""
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
        """Return whether a match of a shape with an opening may begin in `view`. Only shapes whose matches may be
        longer than `window` are considered."""
        return self._search is not None and self._search(ANYWHERE, self._searched(view), 0, len(view.data))[0][0] >= 0

    def _searched(self, view: View) -> bytes:
        return view.data.translate(matching.UNDERSCORES) if self._splits else view.data
