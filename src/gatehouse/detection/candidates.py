"""Which of many regexes match, and where, without asking each of them.

1. `re2.Filter` names those whose literals occur.
2. Numbers and the like have no literals, but few skeletons: one regex over the text's skeleton finds where any of them
   may begin, and which ones do is remembered by the skeleton found.
3. The rest is asked for group by group, by an alternation that matches nowhere if none of them does.

One large `re2.Set` is not an option: its automaton grows without bound on hostile texts.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection import matching
from gatehouse.detection.skeleton import skeleton

#: The bytes of all groups of a match, the whole one first; -1 where there is none.
Spans: TypeAlias = Sequence[tuple[int, int]]
Search: TypeAlias = Callable[[Any, bytes, int, int], Spans]

ANYWHERE: Final = re2._re2.RE2.Anchor.UNANCHORED
HERE: Final = re2._re2.RE2.Anchor.ANCHOR_START
#: The mask of what is looked for in every text.
ALWAYS: Final = 1

#: Longer matches begin with a literal of their own and are looked for in all of a text.
NEAR: Final = 256

#: A filter's literals are one automaton: few enough that it stays small.
_REGEXES_A_FILTER: Final = 1024
#: A longer match's skeleton is its own: nothing to remember.
_LONGEST_SKELETON: Final = 128
#: Skeletons that are remembered, each with some tens of bytes.
_REMEMBERED: Final = 8192
#: So many unknown skeletons in one piece of text are made up: its regexes are asked one by one then.
_UNKNOWN: Final = 64
#: An automaton that outgrows this falls back to RE2's slow one.
_MEMORY: Final = 32 << 20
_LARGEST_PROGRAM: Final = 20_000


class Regex(NamedTuple):
    """`mask`: it is looked for where one of these bits is asked for. `longest` is in code points."""

    number: int
    regex: str
    ignore_case: bool
    search: Search
    mask: int
    longest: int


class Piece(NamedTuple):
    """Bytes of a text from `start` on: matches begin before `last`, and are looked for in what is before `end`. `shape`
    is the skeleton of all of `data`. Regexes whose matches may be longer than `longest` are not looked for, and numbers
    with `seams` only where one of those lies in them with the `width` bytes from there on."""

    data: bytes
    shape: bytes
    start: int
    last: int
    end: int
    longest: int
    seams: Sequence[int] | None = None
    width: int = 0

    def goes_over(self, seams: Sequence[int], begin: int, stop: int) -> bool:
        place = bisect_left(seams, begin)
        return place < len(seams) and seams[place] + self.width <= stop

    def sight(self, longest: int) -> int:
        """Up to where a match of no more than `longest` characters may go."""
        return self.end if longest <= NEAR else len(self.data)


class Hit(NamedTuple):
    """A regex's match; others that begin before `last` may follow."""

    number: int
    spans: Spans
    last: int


#: From which byte on a regex may match again, by its number.
Behind: TypeAlias = Mapping[int, int]


class Candidates:
    def __init__(self, regexes: Sequence[Regex]) -> None:
        self._filters: list[tuple[list[Regex], Any]] = []
        unfiltered: list[Regex] = []
        for first in range(0, len(regexes), _REGEXES_A_FILTER):
            some = regexes[first : first + _REGEXES_A_FILTER]
            # What passes with an empty text has no literal.
            passing = set(_filter(some).Match(b"", True))
            unfiltered += [regex for place, regex in enumerate(some) if place in passing]
            if literal := [regex for place, regex in enumerate(some) if place not in passing]:
                self._filters.append((literal, _filter(literal)))
        by_skeleton: dict[str, list[Regex]] = {}
        self._rest: list[Regex] = []
        for regex in unfiltered:
            shape = skeleton(regex.regex, ignore_case=regex.ignore_case) if regex.longest <= _LONGEST_SKELETON else None
            if shape is None:
                self._rest.append(regex)
            else:
                by_skeleton.setdefault(shape, []).append(regex)
        self._numbers = _Numbers(by_skeleton) if by_skeleton else None

    def hits(self, piece: Piece, mask: int, behind: Behind) -> Iterator[Hit]:
        """Matches in `piece`, of the regexes that `mask` asks for; of one regex in the order of the text."""
        for regexes, literals in self._filters:
            passed = [regexes[place] for place in literals.Match(piece.data[piece.start : piece.end], True)]
            yield from _first(passed, piece, piece.start, mask, behind)
        yield from _first(self._rest, piece, piece.start, mask, behind)
        if self._numbers is not None:
            yield from self._numbers.hits(piece, mask, behind)


class _Numbers:
    def __init__(self, by_skeleton: dict[str, list[Regex]]) -> None:
        self._regexes = [regex for regexes in by_skeleton.values() for regex in regexes]
        self._search: Search = _compiled("|".join(by_skeleton))
        self._each: list[tuple[Search, list[Regex]]] = [
            (_compiled(shape), regexes) for shape, regexes in by_skeleton.items()
        ]
        self._known: dict[tuple[bytes, int], tuple[Regex, ...]] = {}

    def hits(self, piece: Piece, mask: int, behind: Behind) -> Iterator[Hit]:
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
                    yield from _first(self._regexes, piece, begin, mask, behind)
                    return
                regexes = self._learn(key, shape, begin, end)
            for number, _, _, look, wanted, _ in regexes:
                if wanted & mask and behind.get(number, 0) <= begin:
                    spans = look(HERE, data, begin, end)
                    if spans[0][0] >= 0:
                        yield Hit(number, spans, start)

    def _learn(self, key: tuple[bytes, int], shape: bytes, begin: int, end: int) -> tuple[Regex, ...]:
        found = tuple(
            regex for search, regexes in self._each if search(HERE, shape, begin, end)[0][0] >= 0 for regex in regexes
        )
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = found
        return found


def _first(regexes: Iterable[Regex], piece: Piece, start: int, mask: int, behind: Behind) -> Iterator[Hit]:
    last = piece.last
    for regex in regexes:
        if regex.mask & mask and regex.longest <= piece.longest:
            begin = max(start, behind.get(regex.number, 0))
            spans = regex.search(ANYWHERE, piece.data, begin, piece.sight(regex.longest))
            if 0 <= spans[0][0] < last:
                yield Hit(regex.number, spans, last)


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
    search: Search = re2.compile(shape, options)._regexp.Match
    return search
