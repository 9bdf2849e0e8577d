"""Searches a text for context words. One search covers the words of all patterns. `matching` defines which words
are treated as context words."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import re2

from gatehouse.detection.normalise import View
from gatehouse.detection.pattern import CONTEXT_CHARACTERS_AFTER, CONTEXT_CHARACTERS_BEFORE
from gatehouse.detection.regex.byte_search import ANYWHERE, Search, search_of
from gatehouse.detection.search import matching

_MAX_MEMORY_BYTES: Final = 16 << 20
#: Maximum distinct matches whose words are cached. The same words recur in most texts.
_MAX_CACHED_MATCHES: Final = 4096


class WordPositions(NamedTuple):
    """The positions of the context words in a view, in characters, sorted by start. `bits` has a bit mask for each
    word: one bit for each pattern that has this context word. `bits_of_all` is the union of all masks."""

    begins: Sequence[int] = ()
    ends: Sequence[int] = ()
    bits: Sequence[int] = ()
    bits_of_all: int = 0

    def bits_near(self, start: int, end: int) -> int:
        """Return the union of the masks of the words near the finding from `start` to `end`."""
        near_bits = 0
        for index in range(bisect_left(self.begins, start - CONTEXT_CHARACTERS_BEFORE), len(self.begins)):
            begin, word_end = self.begins[index], self.ends[index]
            if begin >= end + CONTEXT_CHARACTERS_AFTER:
                break
            if word_end <= start or (begin >= end and word_end <= end + CONTEXT_CHARACTERS_AFTER):
                near_bits |= self.bits[index]
        return near_bits


NONE: Final = WordPositions()


class Contexts:
    """Searches for context words. `words` maps each word, in lower case, to the bit mask of the patterns that have
    it."""

    def __init__(self, words: Mapping[str, int]) -> None:
        self._searches = [_compiled(chunk) for chunk in matching.chunks(sorted(words))]
        #: maps the text of a match, without the adjacent characters, to the length and mask of each word at its start
        self._words = {
            key: tuple(_words_at_start(key, words))
            for word in words
            for key in ((word, word + "s") if matching.has_plural(word) else (word,))
        }
        self._by_bytes: dict[bytes, tuple[tuple[int, int, int], ...]] = {}

    def words_near(self, view: View, first: int, last: int) -> WordPositions:
        """Return the positions of the words near the characters from `first` to `last`."""
        start = view.byte(max(0, first - CONTEXT_CHARACTERS_BEFORE - 1))
        end = view.byte(min(len(view), last + CONTEXT_CHARACTERS_AFTER + 2))
        matches = [match for search in self._searches for match in self._matches(search, view, start, end)]
        if not matches:
            return NONE
        if len(self._searches) > 1:
            matches.sort()
        begins, ends, bits = zip(*matches, strict=True)
        union = 0
        for word_bits in bits:
            union |= word_bits
        return WordPositions(begins, ends, bits, union)

    def _matches(self, search: Any, view: View, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        data, cache, character = view.data, self._by_bytes, view.character
        length = len(data)
        begin, end = search(ANYWHERE, data, start, stop)[0]
        while begin >= 0:
            matched = data[begin:end]
            if begin and end < length and matched in cache:
                words = cache[matched]
            else:
                words = tuple(self._words_in(matched.decode(), first=begin == 0, last=end == length))
                if begin and end < length and len(cache) < _MAX_CACHED_MATCHES:
                    cache[matched] = words
            place = character(begin)
            for offset, size, bits in words:
                yield place + offset, place + offset + size, bits
            begin, end = search(ANYWHERE, data, begin + 1, stop)[0]

    def _words_in(self, matched: str, *, first: bool, last: bool) -> Iterator[tuple[int, int, int]]:
        """Yield the start, length and mask of each word in a match. A match includes the characters next to the word,
        except at the beginning of the text (`first`) and at its end (`last`)."""
        for start in (0, 1) if first else (1,):
            for stop in (len(matched) - 1, len(matched)) if last else (len(matched) - 1,):
                key = matched[start:stop].lower()
                if key and (stop == len(matched) or matching.may_follow(matched[stop].lower(), key)):
                    for size, bits in self._words.get(key, ()):
                        yield start, size, bits


class NearbyWords:
    """The context words near a region of a view. They are searched for on first use."""

    __slots__ = ("_contexts", "_end", "_first", "_positions", "_view")

    def __init__(self, contexts: Contexts, view: View, first: int, end: int) -> None:
        self._contexts = contexts
        self._view = view
        self._first = first
        self._end = end
        self._positions: WordPositions | None = None

    @property
    def positions(self) -> WordPositions:
        if self._positions is None:
            self._positions = self._contexts.words_near(self._view, self._first, self._end)
        return self._positions

    def may_have(self, mask: int) -> bool:
        return self._positions is None or self._positions.bits_of_all & mask != 0

    def have(self, mask: int) -> bool:
        return self.positions.bits_of_all & mask != 0


def _words_at_start(key: str, words: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    for size in range(1, len(key) + 1):
        word, rest = key[:size], key[size : size + 2]
        is_plural = rest[:1] == "s" and matching.has_plural(word) and _is_whole_word(word, rest[1:])
        if word in words and (_is_whole_word(word, rest) or is_plural):
            yield size, words[word]


def _is_whole_word(word: str, rest: str) -> bool:
    return not rest or matching.may_follow(rest[0], word)


def _compiled(words: Sequence[str]) -> Search:
    options = matching.options(ignore_case=True)
    options.longest_match = True
    options.never_capture = True
    options.max_mem = _MAX_MEMORY_BYTES
    return search_of(re2.compile(matching.standing_alone(words), options))
