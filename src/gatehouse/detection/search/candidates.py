"""Searches for the matches of many regexes in one text, mostly without a separate search for each regex.

1. For regexes with literals, `re2.Filter` returns the regexes whose literals occur in the text. Regexes of one group
   often have short literals that occur in prose too. Such a group is first searched for with one combined regex.
2. Regexes for numbers have no literals, but they have few different skeletons (`regex.skeleton`). One combined regex
   over the skeleton of the text returns the positions where any of them may begin. A cache maps each skeleton to the
   regexes that match it.
3. Each of the remaining regexes is searched for separately.

A regex that needs a context word is skipped if the text is known to have none. The search for context words costs more
than most other searches, so it runs only after the first match that needs a context word.

One large `re2.Set` is not used, because its automaton grows without bound on hostile texts.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import re2

from gatehouse.detection.pattern import NEAR_CHARACTERS
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

#: Maximum number of regexes of one filter. All literals of a filter form one automaton, which must stay small.
_MAX_FILTER_REGEXES: Final = 1024
#: Maximum match length of a regex that is searched for by skeleton. Longer skeletons seldom recur, so a cache does not
#: help.
_MAX_SKELETON_CHARACTERS: Final = 128
#: Maximum number of cached skeletons. Each takes some tens of bytes.
_MAX_CACHED_SKELETONS: Final = 8192
#: Maximum number of skeletons of one piece of text that may be missing in the cache. If a hostile text has more, each
#: regex is searched for separately.
_MAX_UNCACHED_SKELETONS: Final = 64
#: Maximum memory of an automaton. RE2 falls back to a slower algorithm when an automaton needs more.
_MAX_MEMORY_BYTES: Final = 32 << 20
#: Maximum length of a combined regex. It keeps the automaton small.
_MAX_ALTERNATION_CHARACTERS: Final = 6_000


class Regex(NamedTuple):
    """A regex that is searched for.

    `mask` has one bit for each set of context words. A match needs a context word of one of these sets. A regex that
    needs no context word has the mask `ALWAYS`. `longest` is the length of the longest match in code points. Regexes of
    the same `group` often share literals."""

    number: int
    regex: str
    ignore_case: bool
    search: Search
    mask: int
    longest: int
    group: str = ""


class SearchedPiece(NamedTuple):
    """The part of `data` that is searched. All positions are byte positions.

    `shape` is the skeleton of `data`. Matches begin at `start` or later and before `last`, and end at `end` or earlier.
    Regexes whose matches may be longer than `longest` are skipped. If `seams` is set, a match by skeleton counts only
    if it contains a seam and the `width` bytes that begin at the seam. A context word may still arrive for a match that
    ends at `context_unknown_from` or later, so such a match is returned even if it has no context word yet."""

    data: bytes
    shape: bytes
    start: int
    last: int
    end: int
    longest: int
    seams: Sequence[int] | None = None
    width: int = 0
    context_unknown_from: int = sys.maxsize

    def contains_seam(self, seams: Sequence[int], begin: int, stop: int) -> bool:
        """Return whether the range from `begin` to `stop` contains a seam and the `width` bytes that begin at it."""
        place = bisect_left(seams, begin)
        return place < len(seams) and seams[place] + self.width <= stop

    def search_end(self, longest: int) -> int:
        """Return the byte at which a search for matches of at most `longest` characters ends. Matches longer than
        `NEAR_CHARACTERS` may extend to the end of `data`."""
        return self.end if longest <= NEAR_CHARACTERS else len(self.data)


class CandidateMatch(NamedTuple):
    """A match of the regex with this `number`. The caller searches for further matches of the regex that begin before
    `last`."""

    number: int
    spans: Spans
    last: int


#: Maps the number of a regex to the byte from which the regex may match again.
ResumePositions: TypeAlias = Mapping[int, int]


class Words(Protocol):
    """The context words near a piece of text. They are searched for on first use."""

    def may_have(self, mask: int) -> bool:
        """Return whether a context word of `mask` may be near. Never searches: returns true before the first search."""
        ...

    def have(self, mask: int) -> bool:
        """Return whether a context word of `mask` is near."""
        ...


class Candidates:
    """Searches for many regexes. It is compiled once, when the patterns are loaded, and is thread-safe."""

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
        self._single_regexes: list[Regex] = []
        for regex in unfiltered:
            length = longest(regex.regex)
            short = length is not None and length <= _MAX_SKELETON_CHARACTERS
            shape = skeleton(regex.regex, ignore_case=regex.ignore_case) if short else None
            if shape is None:
                self._single_regexes.append(regex)
            else:
                by_skeleton.setdefault(shape, []).append(regex)
        self._numbers = _SkeletonRegexes(by_skeleton) if by_skeleton else None
        self._any_single_regex = _any_of(self._single_regexes)

    def hits(self, piece: SearchedPiece, words: Words, resume: ResumePositions) -> Iterator[CandidateMatch]:
        """Yield the matches in `piece`. The matches of each regex are in the order of the text."""
        for literals in self._filters:
            yield from _first_matches(literals.possible(piece), piece, piece.start, words, resume)
        if self._any_single_regex is None or _is_in(self._any_single_regex, piece):
            yield from _first_matches(self._single_regexes, piece, piece.start, words, resume)
        if self._numbers is not None:
            yield from self._numbers.hits(piece, words, resume)

    def first(self, data: bytes, shape: bytes, start: int, end: int) -> int:
        """Return the first byte from `start` on at which a match may begin, or `end` if there is none."""
        lowest = end if self._numbers is None else self._numbers.first(shape, start, end)
        passed = (
            filtered.regexes[place]
            for filtered in self._filters
            for place in filtered.filter.Match(data[start:end], True)
        )
        for regex in chain(self._single_regexes, passed):
            begin = regex.search(ANYWHERE, data, start, end)[0][0]
            lowest = begin if 0 <= begin < lowest else lowest
        return lowest


class _LiteralRegexes(NamedTuple):
    """Regexes with literals. `groups` has one entry for each regex: the combined search of its group, or None."""

    regexes: list[Regex]
    filter: Any
    groups: list[Search | None]

    def possible(self, piece: SearchedPiece) -> list[Regex]:
        """Return the regexes whose literals occur in `piece`, except those of a group whose combined search finds
        nothing."""
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
            # Which regexes match here depends only on the skeleton of the longest match and the character on either
            # side of it. A match at the beginning of `data` has no character before it. The negative length in its key
            # marks this case.
            key = (shape[begin - 1 : stop + 2], stop - begin) if begin else (shape[: stop + 2], begin - stop)
            regexes = cache.get(key)
            if regexes is None:
                uncached += 1
                if uncached > _MAX_UNCACHED_SKELETONS:
                    yield from _first_matches(self._regexes, piece, begin, words, resume)
                    return
                regexes = self._add_to_cache(key, shape, begin, end)
            for number, _, _, match_here, mask, *_ in regexes:
                context_unknown = stop >= piece.context_unknown_from
                if resume.get(number, 0) <= begin and (mask == ALWAYS or context_unknown or words.may_have(mask)):
                    spans = match_here(HERE, data, begin, end)
                    if spans[0][0] >= 0 and (mask == ALWAYS or context_unknown or words.have(mask)):
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
    """Yield for each regex its first match that begins at `start` or later."""
    last = piece.last
    for regex in regexes:
        if regex.longest > piece.longest:
            continue
        mask, begin = regex.mask, max(start, resume.get(regex.number, 0))
        if mask != ALWAYS and not words.may_have(mask):
            if piece.context_unknown_from == sys.maxsize:
                continue
            begin = max(begin, piece.context_unknown_from - 4 * regex.longest)
        spans = regex.search(ANYWHERE, piece.data, begin, piece.search_end(regex.longest))
        if 0 <= spans[0][0] < last and (mask == ALWAYS or piece.context_unknown_from < sys.maxsize or words.have(mask)):
            yield CandidateMatch(regex.number, spans, last)


def _group_searches(regexes: Sequence[Regex]) -> list[Search | None]:
    searches: list[Search | None] = []
    for name, group in groupby(regexes, attrgetter("group")):
        members = list(group)
        searches += [_any_of(members) if name else None] * len(members)
    return searches


def _any_of(regexes: Sequence[Regex]) -> Search | None:
    """Return one search for all of the regexes, or None if it would be no faster than a search for each of them."""
    if len(regexes) < 2 or any(regex.longest > NEAR_CHARACTERS for regex in regexes):
        return None
    combined = "|".join(f"(?{'i' if regex.ignore_case else '-i'}:{regex.regex})" for regex in regexes)
    if len(combined) > _MAX_ALTERNATION_CHARACTERS:
        return None
    options = matching.options()
    options.never_capture = True
    try:
        return search_of(re2.compile(combined, options))
    except re2.error:
        # RE2 refuses the combined regex because it is too large.
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
