"""Which of many regexes match, and where, without asking each of them.

1. `re2.Filter` names those whose literals occur.
2. Numbers and the like have no literals, but few skeletons: one regex over the text's skeleton finds where any of them
   may begin, and which ones do is remembered by the skeleton found.
3. The rest is searched one by one. Regexes of one group, most of them with short literals that prose has too, are
   searched together first.

A regex that needs a context word is refused once it is known that the text has none: looking for the words costs more
than most searches, so it waits for the first match that needs one.

One large `re2.Set` is not an option: its automaton grows without bound on hostile texts.
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

#: The mask of what needs no context word.
ALWAYS: Final = 1

#: A filter's literals are one automaton: few enough that it stays small.
_REGEXES_A_FILTER: Final = 1024
#: A longer match's skeleton is its own: nothing to remember.
_MAX_SKELETON_CHARACTERS: Final = 128
#: Skeletons that are remembered, each with some tens of bytes.
_REMEMBERED: Final = 8192
#: So many unknown skeletons in one piece of text are made up: its regexes are asked one by one then.
_UNKNOWN: Final = 64
#: An automaton that outgrows this falls back to RE2's slow one.
_MEMORY: Final = 32 << 20
#: In characters: what is searched together stays one small automaton.
_MAX_ALTERNATION_CHARACTERS: Final = 6_000


class Regex(NamedTuple):
    """`mask`: bits of the context words of which it needs one, or `ALWAYS`. `longest` is in code points. Regexes of one
    `group` are likely to have the same literals."""

    number: int
    regex: str
    ignore_case: bool
    search: Search
    mask: int
    longest: int
    group: str = ""


class SearchedPiece(NamedTuple):
    """Bytes of a text from `start` on: matches begin before `last`, and are looked for in what is before `end`. `shape`
    is the skeleton of all of `data`. Regexes whose matches may be longer than `longest` are not looked for, and numbers
    with `seams` only where one of those lies in them with the `width` bytes from there on. Matches that end at `waits`
    or later are looked for also where their context words are not known yet."""

    data: bytes
    shape: bytes
    start: int
    last: int
    end: int
    longest: int
    seams: Sequence[int] | None = None
    width: int = 0
    waits: int = sys.maxsize

    def goes_over(self, seams: Sequence[int], begin: int, stop: int) -> bool:
        place = bisect_left(seams, begin)
        return place < len(seams) and seams[place] + self.width <= stop

    def sight(self, longest: int) -> int:
        """Up to where a match of no more than `longest` characters may go: the longest ones are looked for in all of a
        text."""
        return self.end if longest <= NEAR else len(self.data)


class CandidateMatch(NamedTuple):
    """A regex's match; others that begin before `last` may follow."""

    number: int
    spans: Spans
    last: int


#: From which byte on a regex may match again, by its number.
Behind: TypeAlias = Mapping[int, int]


class Words(Protocol):
    """The context words near a piece of text, looked for when they are asked for."""

    def may_have(self, mask: int) -> bool:
        """Whether one of these is there, as far as it is known: a search has not happened yet, or found it."""
        ...

    def have(self, mask: int) -> bool:
        """Whether one of these is there."""
        ...


class Candidates:
    def __init__(self, regexes: Sequence[Regex]) -> None:
        self._filters: list[_Literals] = []
        unfiltered: list[Regex] = []
        for first in range(0, len(regexes), _REGEXES_A_FILTER):
            some = regexes[first : first + _REGEXES_A_FILTER]
            # What passes with an empty text has no literal.
            passing = set(_filter(some).Match(b"", True))
            unfiltered += [regex for place, regex in enumerate(some) if place in passing]
            if literal := [regex for place, regex in enumerate(some) if place not in passing]:
                self._filters.append(_Literals(literal, _filter(literal), _group_searches(literal)))
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
        self._numbers = _Numbers(by_skeleton) if by_skeleton else None
        self._any_of_rest = _any_of(self._rest)

    def hits(self, piece: SearchedPiece, words: Words, behind: Behind) -> Iterator[CandidateMatch]:
        """Matches in `piece`; of one regex in the order of the text."""
        for literals in self._filters:
            yield from _first(literals.possible(piece), piece, piece.start, words, behind)
        if self._any_of_rest is None or _is_in(self._any_of_rest, piece):
            yield from _first(self._rest, piece, piece.start, words, behind)
        if self._numbers is not None:
            yield from self._numbers.hits(piece, words, behind)

    def first(self, data: bytes, shape: bytes, start: int, end: int) -> int:
        """The first byte from `start` on at which a match may begin, or `end`."""
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


class _Literals(NamedTuple):
    """Regexes with literals; for each, what finds out whether one of its group matches, None where it has no group."""

    regexes: list[Regex]
    filter: Any
    groups: list[Search | None]

    def possible(self, piece: SearchedPiece) -> list[Regex]:
        """Those whose literals occur, without groups of which none matches."""
        possible: list[Regex] = []
        group, is_possible = None, True
        for place in self.filter.Match(piece.data[piece.start : piece.end], True):
            search = self.groups[place]
            if search is not group:
                group, is_possible = search, search is None or _is_in(search, piece)
            if is_possible:
                possible.append(self.regexes[place])
        return possible


class _Numbers:
    def __init__(self, by_skeleton: dict[str, list[Regex]]) -> None:
        self._regexes = [regex for regexes in by_skeleton.values() for regex in regexes]
        self._search: Search = _compiled("|".join(by_skeleton))
        self._grouped_regexes: list[tuple[Search, list[Regex]]] = [
            (_compiled(shape), regexes) for shape, regexes in by_skeleton.items()
        ]
        self._known: dict[tuple[bytes, int], tuple[Regex, ...]] = {}

    def hits(self, piece: SearchedPiece, words: Words, behind: Behind) -> Iterator[CandidateMatch]:
        data, shape, start, last, end = piece[:5]
        search, known = self._search, self._known
        unknown = 0
        while start < last:
            begin, stop = search(ANYWHERE, shape, start, end)[0]
            if not 0 <= begin < last:
                return
            start = begin + 1
            if piece.seams is not None and not piece.goes_over(piece.seams, begin, stop):
                continue
            # What begins here is settled by the longest match and a character on either side of it; at the very
            # beginning there is none.
            key = (shape[begin - 1 : stop + 2], stop - begin) if begin else (shape[: stop + 2], begin - stop)
            regexes = known.get(key)
            if regexes is None:
                unknown += 1
                if unknown > _UNKNOWN:
                    yield from _first(self._regexes, piece, begin, words, behind)
                    return
                regexes = self._learn(key, shape, begin, end)
            for number, _, _, look, mask, *_ in regexes:
                waits = stop >= piece.waits
                if behind.get(number, 0) <= begin and (mask == ALWAYS or waits or words.may_have(mask)):
                    spans = look(HERE, data, begin, end)
                    if spans[0][0] >= 0 and (mask == ALWAYS or waits or words.have(mask)):
                        yield CandidateMatch(number, spans, start)

    def first(self, shape: bytes, start: int, end: int) -> int:
        begin = self._search(ANYWHERE, shape, start, end)[0][0]
        return begin if begin >= 0 else end

    def _learn(self, key: tuple[bytes, int], shape: bytes, begin: int, end: int) -> tuple[Regex, ...]:
        matching_regexes = tuple(
            regex
            for search, regexes in self._grouped_regexes
            if search(HERE, shape, begin, end)[0][0] >= 0
            for regex in regexes
        )
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = matching_regexes
        return matching_regexes


def _first(
    regexes: Iterable[Regex], piece: SearchedPiece, start: int, words: Words, behind: Behind
) -> Iterator[CandidateMatch]:
    last = piece.last
    for regex in regexes:
        if regex.longest > piece.longest:
            continue
        mask, begin = regex.mask, max(start, behind.get(regex.number, 0))
        if mask != ALWAYS and not words.may_have(mask):
            if piece.waits == sys.maxsize:
                continue
            begin = max(begin, piece.waits - 4 * regex.longest)
        spans = regex.search(ANYWHERE, piece.data, begin, piece.sight(regex.longest))
        if 0 <= spans[0][0] < last and (mask == ALWAYS or piece.waits < sys.maxsize or words.have(mask)):
            yield CandidateMatch(regex.number, spans, last)


def _group_searches(regexes: Sequence[Regex]) -> list[Search | None]:
    searches: list[Search | None] = []
    for name, group in groupby(regexes, attrgetter("group")):
        members = list(group)
        searches += [_any_of(members) if name else None] * len(members)
    return searches


def _any_of(regexes: Sequence[Regex]) -> Search | None:
    """Finds out whether one of them matches. None where asking them one by one is as good."""
    if len(regexes) < 2 or any(regex.longest > NEAR for regex in regexes):
        return None
    written = "|".join(f"(?{'i' if regex.ignore_case else '-i'}:{regex.regex})" for regex in regexes)
    if len(written) > _MAX_ALTERNATION_CHARACTERS:
        return None
    options = matching.options()
    options.never_capture = True
    try:
        return search_of(re2.compile(written, options))
    except re2.error:
        # Together they are too large.
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
    options.max_mem = _MEMORY
    return search_of(re2.compile(shape, options))
