"""Where context words stand in a text, those of all patterns by one search; what counts as one says `matching`."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import re2

from gatehouse.detection import matching
from gatehouse.detection.normalise import View
from gatehouse.detection.pattern import CONTEXT_AFTER, CONTEXT_BEFORE
from gatehouse.detection.searching import ANYWHERE, Search, search_of

_MEMORY: Final = 16 << 20
#: What a search has found is remembered: it comes again and again.
_REMEMBERED: Final = 4096


class Standing(NamedTuple):
    """The words of a text by where they begin, in characters of the view. `bits` say whose each is, `bits_of_all` whose
    they are together."""

    begins: Sequence[int] = ()
    ends: Sequence[int] = ()
    bits: Sequence[int] = ()
    bits_of_all: int = 0

    def near(self, start: int, end: int) -> int:
        """The bits of the words near the finding from `start` to `end`."""
        found = 0
        for place in range(bisect_left(self.begins, start - CONTEXT_BEFORE), len(self.begins)):
            begin, behind = self.begins[place], self.ends[place]
            if begin >= end + CONTEXT_AFTER:
                break
            if behind <= start or (begin >= end and behind <= end + CONTEXT_AFTER):
                found |= self.bits[place]
        return found


NONE: Final = Standing()


class Contexts:
    """`words`, in lower case, with the bits of the patterns whose context words they are."""

    def __init__(self, words: Mapping[str, int]) -> None:
        self._searches = [_compiled(chunk) for chunk in matching.chunks(sorted(words))]
        #: what a search finds between two characters beside it: the words that begin there, by length
        self._words = {key: tuple(_beginning(key, words)) for word in words for key in (word, word + "s")}
        self._by_bytes: dict[bytes, tuple[tuple[int, int, int], ...]] = {}

    def standing(self, view: View, first: int, last: int) -> Standing:
        """The words near what is from `first` to `last`."""
        start = view.byte(max(0, first - CONTEXT_BEFORE - 1))
        end = view.byte(min(len(view), last + CONTEXT_AFTER + 2))
        found = [place for search in self._searches for place in self._places(search, view, start, end)]
        if not found:
            return NONE
        if len(self._searches) > 1:
            found.sort()
        begins, ends, bits = zip(*found, strict=True)
        together = 0
        for each in bits:
            together |= each
        return Standing(begins, ends, bits, together)

    def _places(self, search: Any, view: View, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        data, known, character = view.data, self._by_bytes, view.character
        length = len(data)
        begin, end = search(ANYWHERE, data, start, stop)[0]
        while begin >= 0:
            seen = data[begin:end]
            if begin and end < length and seen in known:
                words = known[seen]
            else:
                words = tuple(self._standing(seen.decode(), first=begin == 0, last=end == length))
                if begin and end < length and len(known) < _REMEMBERED:
                    known[seen] = words
            place = character(begin)
            for offset, size, bits in words:
                yield place + offset, place + offset + size, bits
            begin, end = search(ANYWHERE, data, begin + 1, stop)[0]

    def _standing(self, seen: str, *, first: bool, last: bool) -> Iterator[tuple[int, int, int]]:
        """The words in what was found, from which character on, how long and whose. At the beginning and the end of a
        text there may be no other character around them."""
        for start in (0, 1) if first else (1,):
            for stop in (len(seen) - 1, len(seen)) if last else (len(seen) - 1,):
                key = seen[start:stop].lower()
                if key and (stop == len(seen) or matching.may_stand_behind(seen[stop].lower(), key)):
                    for size, bits in self._words.get(key, ()):
                        yield start, size, bits


class Near:
    """The context words near a region of a view, which are looked for when they are first asked for."""

    __slots__ = ("_contexts", "_end", "_first", "_standing", "_view")

    def __init__(self, contexts: Contexts, view: View, first: int, end: int) -> None:
        self._contexts = contexts
        self._view = view
        self._first = first
        self._end = end
        self._standing: Standing | None = None

    @property
    def standing(self) -> Standing:
        if self._standing is None:
            self._standing = self._contexts.standing(self._view, self._first, self._end)
        return self._standing

    def may_have(self, mask: int) -> bool:
        return self._standing is None or self._standing.bits_of_all & mask != 0

    def have(self, mask: int) -> bool:
        return self.standing.bits_of_all & mask != 0


def _beginning(key: str, words: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    for size in range(1, len(key) + 1):
        word, rest = key[:size], key[size : size + 2]
        if word in words and (_ends(word, rest) or (rest[0] == "s" and _ends(word, rest[1:]))):
            yield size, words[word]


def _ends(word: str, rest: str) -> bool:
    return not rest or matching.may_stand_behind(rest[0], word)


def _compiled(words: Sequence[str]) -> Search:
    options = matching.options(ignore_case=True)
    options.longest_match = True
    options.never_capture = True
    options.max_mem = _MEMORY
    return search_of(re2.compile(matching.standing_alone(words), options))
