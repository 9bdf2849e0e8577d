"""Finds the matches of many regexes without searching for each of them.

1. `re2.Filter` returns the regexes whose literals occur in the text.
2. Regexes for numbers and the like have no literals, but few different skeletons. One regex over the text's skeleton
   finds where any of them may begin. Which regexes match a skeleton is cached.
3. All other regexes are searched for one by one. Regexes of one group, whose short literals occur in prose too, are
   first searched for together.

A regex that needs a context word is skipped if the text is known to have none. The search for context words costs more
than most other searches, so it runs only after the first match that needs one.

One large `re2.Set` is not used, because its automaton grows without bound on hostile texts.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import re2

from gatehouse.detection.pattern import NEAR
from gatehouse.detection.regex.byte_search import (
    ANYWHERE,
    HERE,
    Search,
    Spans,
    search_of,
)
from gatehouse.detection.regex.skeleton import longest, skeleton
from gatehouse.detection.search import matching

#: The mask of a regex that needs no context word.
ALWAYS: Final = 1

#: Regexes of one filter. The literals of a filter are one automaton, which must stay small.
_MAX_FILTER_REGEXES: Final = 1024
#: Regexes with longer matches are not searched for by skeleton, because long skeletons seldom recur.
_MAX_SKELETON_CHARACTERS: Final = 128
#: Cached skeletons, of some tens of bytes each.
_MAX_CACHED_SKELETONS: Final = 8192
#: Skeletons of one piece of text that may be missing in the cache. A hostile text has more; it is then searched for
#: each regex.
_MAX_UNCACHED_SKELETONS: Final = 64
#: Memory of an automaton. With more, RE2 falls back to a slow one.
_MAX_MEMORY_BYTES: Final = 32 << 20
#: Length of a combined regex, so that its automaton stays small.
_MAX_ALTERNATION_CHARACTERS: Final = 6_000


class Regex(NamedTuple):
    """A regex. `mask` has the bits of the context words of which it needs one, or is `ALWAYS`. `longest` is its longest
    match in code points. Regexes of one `group` are likely to have the same literals."""

    number: int
    regex: str
    ignore_case: bool
    search: Search
    mask: int
    longest: int
    group: str = ""


class SearchedPiece(NamedTuple):
    """The part of `data` that is searched. All positions are bytes.

    Matches begin at `start` or later and before `last`, and end at `end` or earlier. `shape` is the skeleton of `data`.
    Regexes whose matches may be longer than `longest` are skipped. With `seams`, a number counts only if it contains
    one of them and the `width` bytes from there on. Matches that end at `waits` or later are returned even if their
    context words are not known yet, because these may follow the text."""

    data: bytes
    shape: bytes
    start: int
    last: int
    end: int
    longest: int
    seams: Sequence[int] | None = None
    width: int = 0
    waits: int = sys.maxsize

    def contains_seam(self, seams: Sequence[int], begin: int, stop: int) -> bool:
        """Return whether the bytes from `begin` to `stop` contain a seam and the `width` bytes from there on."""
        place = bisect_left(seams, begin)
        return place < len(seams) and seams[place] + self.width <= stop

    def search_end(self, longest: int) -> int:
        """Return the end of the search for matches of at most `longest` characters. Long ones may extend to the end of
        `data`."""
        return self.end if longest <= NEAR else len(self.data)


class CandidateMatch(NamedTuple):
    """A match of the regex `number`. Other matches of it that begin before `last` may follow."""

    number: int
    spans: Spans
    last: int


#: The byte from which each regex may match again, by number of the regex.
ResumePositions: TypeAlias = Mapping[int, int]


class Words(Protocol):
    """The context words near a piece of text, searched for on first use."""

    def may_have(self, mask: int) -> bool:
        """Return whether one of the words may be near, without a search: true if none was done yet."""
        ...

    def have(self, mask: int) -> bool:
        """Return whether one of the words is near."""
        ...


class Candidates:
    """Searches for many regexes. Compiled once, when patterns are loaded; thread-safe."""

    def __init__(self, regexes: Sequence[Regex]) -> None:
        self._filters: list[_LiteralRegexes] = []
        unfiltered: list[Regex] = []
        for first in range(0, len(regexes), _MAX_FILTER_REGEXES):
            chunk = regexes[first : first + _MAX_FILTER_REGEXES]
            # The filter returns a regex for an empty text only if it has no literal.
            without_literal = set(_filter(chunk).Match(b"", True))
            unfiltered += [regex for place, regex in enumerate(chunk) if place in without_literal]
            if with_literal := [regex for place, regex in enumerate(chunk) if place not in without_literal]:
                self._filters.append(
                    _LiteralRegexes(with_literal, _filter(with_literal), _group_searches(with_literal))
                )
        by_skeleton: dict[str, list[Regex]] = {}
        self._rest: list[Regex] = []
        for regex in unfiltered:
            length = longest(regex.regex)
            short = length is not None and length <= _MAX_SKELETON_CHARACTERS
            shape = skeleton(regex.regex, ignore_case=regex.ignore_case) if short else None
            if shape is None:
                self._rest.append(regex)
            else:
                by_skeleton.setdefault(shape, []).append(regex)
        self._numbers = _SkeletonRegexes(by_skeleton) if by_skeleton else None
        self._any_of_rest = _any_of(self._rest)

    def hits(self, piece: SearchedPiece, words: Words, resume: ResumePositions) -> Iterator[CandidateMatch]:
        """Yield matches in `piece`. Those of one regex are in the order of the text."""
        for literals in self._filters:
            yield from _first_matches(literals.possible(piece), piece, piece.start, words, resume)
        if self._any_of_rest is None or _is_in(self._any_of_rest, piece):
            yield from _first_matches(self._rest, piece, piece.start, words, resume)
        if self._numbers is not None:
            yield from self._numbers.hits(piece, words, resume)

    def first(self, data: bytes, shape: bytes, start: int, end: int) -> int:
        """Return the first byte from `start` on at which a match may begin, or `end`."""
        lowest = end if self._numbers is None else self._numbers.first(shape, start, end)
        passed = (
            filtered.regexes[place]
            for filtered in self._filters
            for place in filtered.filter.Match(data[start:end], True)
        )
        for regex in chain(self._rest, passed):
            begin = regex.search(ANYWHERE, data, start, end)[0][0]
            lowest = begin if 0 <= begin < lowest else lowest
        return lowest


class _LiteralRegexes(NamedTuple):
    """Regexes with literals. `groups` has for each the search for any regex of its group, or None."""

    regexes: list[Regex]
    filter: Any
    groups: list[Search | None]

    def possible(self, piece: SearchedPiece) -> list[Regex]:
        """Return the regexes whose literals occur, without those of groups of which none matches."""
        possible: list[Regex] = []
        group, is_possible = None, True
        for place in self.filter.Match(piece.data[piece.start : piece.end], True):
            search = self.groups[place]
            if search is not group:
                group, is_possible = search, search is None or _is_in(search, piece)
            if is_possible:
                possible.append(self.regexes[place])
        return possible


class _SkeletonRegexes:
    """Regexes that are searched for by skeleton."""

    def __init__(self, by_skeleton: dict[str, list[Regex]]) -> None:
        self._regexes = [regex for regexes in by_skeleton.values() for regex in regexes]
        self._search: Search = _compiled("|".join(by_skeleton))
        self._grouped_regexes: list[tuple[Search, list[Regex]]] = [
            (_compiled(shape), regexes) for shape, regexes in by_skeleton.items()
        ]
        self._cache: dict[tuple[bytes, int], tuple[Regex, ...]] = {}

    def hits(self, piece: SearchedPiece, words: Words, resume: ResumePositions) -> Iterator[CandidateMatch]:
        data, shape, start, last, end = piece[:5]
        search, cache = self._search, self._cache
        uncached = 0
        while start < last:
            begin, stop = search(ANYWHERE, shape, start, end)[0]
            if not 0 <= begin < last:
                return
            start = begin + 1
            if piece.seams is not None and not piece.contains_seam(piece.seams, begin, stop):
                continue
            # The skeleton of the longest match and the character on either side of it decide which regexes match here.
            # A negative length marks a match at the beginning, which has no character before it.
            key = (shape[begin - 1 : stop + 2], stop - begin) if begin else (shape[: stop + 2], begin - stop)
            regexes = cache.get(key)
            if regexes is None:
                uncached += 1
                if uncached > _MAX_UNCACHED_SKELETONS:
                    yield from _first_matches(self._regexes, piece, begin, words, resume)
                    return
                regexes = self._add_to_cache(key, shape, begin, end)
            for number, _, _, match_here, mask, *_ in regexes:
                waits = stop >= piece.waits
                if resume.get(number, 0) <= begin and (mask == ALWAYS or waits or words.may_have(mask)):
                    spans = match_here(HERE, data, begin, end)
                    if spans[0][0] >= 0 and (mask == ALWAYS or waits or words.have(mask)):
                        yield CandidateMatch(number, spans, start)

    def first(self, shape: bytes, start: int, end: int) -> int:
        begin = self._search(ANYWHERE, shape, start, end)[0][0]
        return begin if begin >= 0 else end

    def _add_to_cache(self, key: tuple[bytes, int], shape: bytes, begin: int, end: int) -> tuple[Regex, ...]:
        matching_regexes = tuple(
            regex
            for search, regexes in self._grouped_regexes
            if search(HERE, shape, begin, end)[0][0] >= 0
            for regex in regexes
        )
        if len(self._cache) >= _MAX_CACHED_SKELETONS:
            self._cache.clear()
        self._cache[key] = matching_regexes
        return matching_regexes


def _first_matches(
    regexes: Iterable[Regex], piece: SearchedPiece, start: int, words: Words, resume: ResumePositions
) -> Iterator[CandidateMatch]:
    """Yield the first match of each regex from `start` on."""
    last = piece.last
    for regex in regexes:
        if regex.longest > piece.longest:
            continue
        mask, begin = regex.mask, max(start, resume.get(regex.number, 0))
        if mask != ALWAYS and not words.may_have(mask):
            if piece.waits == sys.maxsize:
                continue
            begin = max(begin, piece.waits - 4 * regex.longest)
        spans = regex.search(ANYWHERE, piece.data, begin, piece.search_end(regex.longest))
        if 0 <= spans[0][0] < last and (mask == ALWAYS or piece.waits < sys.maxsize or words.have(mask)):
            yield CandidateMatch(regex.number, spans, last)


def _group_searches(regexes: Sequence[Regex]) -> list[Search | None]:
    searches: list[Search | None] = []
    for name, group in groupby(regexes, attrgetter("group")):
        members = list(group)
        searches += [_any_of(members) if name else None] * len(members)
    return searches


def _any_of(regexes: Sequence[Regex]) -> Search | None:
    """Return a search for any of the regexes, or None if it would not be faster than single searches."""
    if len(regexes) < 2 or any(regex.longest > NEAR for regex in regexes):
        return None
    combined = "|".join(f"(?{'i' if regex.ignore_case else '-i'}:{regex.regex})" for regex in regexes)
    if len(combined) > _MAX_ALTERNATION_CHARACTERS:
        return None
    options = matching.options()
    options.never_capture = True
    try:
        return search_of(re2.compile(combined, options))
    except re2.error:
        # The combined regex is too large.
        return None


def _is_in(search: Search, piece: SearchedPiece) -> bool:
    return search(ANYWHERE, piece.data, piece.start, piece.end)[0][0] >= 0


def _filter(regexes: Sequence[Regex]) -> Any:
    literals = re2.Filter()
    for regex in regexes:
        literals.Add(regex.regex, matching.options(ignore_case=regex.ignore_case))
    literals.Compile()
    return literals._filter


def _compiled(shape: str) -> Search:
    options = matching.options()
    options.longest_match = True
    options.never_capture = True
    options.max_mem = _MAX_MEMORY_BYTES
    return search_of(re2.compile(shape, options))
