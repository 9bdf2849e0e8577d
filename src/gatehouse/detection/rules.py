"""Patterns compiled together: what each of them finds, as `matching` defines it, in about one pass over the text.

A shape's matches do not overlap: the next begins behind the last. Where it ended is the state of a `Chain`, so that a
text in pieces gives what the whole one does. Context words are looked for once: a shape that needs one is not asked
where there is none, and no score is raised.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import re2

from gatehouse.detection import matching
from gatehouse.detection.candidates import ALWAYS, ANYWHERE, Candidates, Piece, Regex, Search, Spans
from gatehouse.detection.findings import Finding
from gatehouse.detection.matching import CompiledShape
from gatehouse.detection.normalise import LOOKALIKES, View
from gatehouse.detection.openings import Openings, Reach
from gatehouse.detection.pattern import CONTEXT_AFTER, CONTEXT_BEFORE, Pattern, Shape
from gatehouse.detection.skeleton import SKELETON

_latin: Final = str.maketrans(LOOKALIKES)


_NONE: Final[Spans] = ((-1, -1),)


def _never(*_: object) -> Spans:
    return _NONE


class BadPattern(ValueError):
    """RE2 does not take a pattern's regex; its own words say why."""

    def __init__(self, pattern_id: str, reason: str) -> None:
        super().__init__(reason)
        self.pattern_id = pattern_id


class Rule(NamedTuple):
    """One shape of a pattern. `context` is the bit that says that the pattern's context words may occur."""

    search: Search
    shape: CompiledShape
    context: int
    context_search: Search
    entity_type: str
    source: str
    max_length: int


class Chain(msgspec.Struct, gc=False):
    """Where, in code points of the source, the last match of each regex ended."""

    behind: dict[int, int] = {}

    def forget(self, gone: int, settled: int) -> None:
        """The source lost its first `gone` code points; what ended before `settled` of the rest says nothing more."""
        if self.behind:
            self.behind = {regex: end - gone for regex, end in self.behind.items() if end - gone > settled}


class Region(NamedTuple):
    """Characters of a view: where a match may begin, which it may see, and how long it may be. With `seams` only a
    finding counts that holds one of them, and `width` characters from there on."""

    first: int
    last: int
    end: int
    longest: int = sys.maxsize
    seams: Sequence[int] | None = None
    width: int = 1

    def takes(self, start: int, end: int) -> bool:
        if self.seams is None:
            return True
        place = bisect_left(self.seams, start)
        return place < len(self.seams) and self.seams[place] + self.width <= end


class Rules:
    """Compiled once, when patterns are loaded; may be used by many threads. Raises `BadPattern`."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        compiled = list(_compiled(patterns))
        #: by regex: shapes that share one are looked for once
        self._rules: list[tuple[Rule, ...]] = []
        regexes: list[Regex] = []
        for index, ((regex, ignore_case), rules) in enumerate(_by_regex(compiled).items()):
            self._rules.append(tuple(rules))
            mask = 0
            for rule in rules:
                mask |= rule.context if rule.shape.needs_context else ALWAYS
            longest = max(rule.max_length for rule in rules)
            regexes.append(Regex(index, regex, ignore_case, rules[0].search, mask, longest))
        self._candidates = Candidates(regexes)
        self._contexts, self._context_bits = _contexts(compiled)
        self.openings = Openings(
            Reach(shape.max_length, shape.opening, not _begins_word(shape)) for shape, _ in compiled
        )

    def findings(self, view: View, regions: Iterable[Region], chain: Chain, length: int) -> Iterator[Finding]:
        """What is found in `regions`, in order, in characters of `view`. `length` is the source's."""
        mask = self._present(view)
        shape = view.data.translate(SKELETON)
        behind = {regex: view.byte(view.at(known)) for regex, known in chain.behind.items()}
        for region in regions:
            for index, start, end in self._matches(view, shape, region, behind, mask):
                if region.takes(start, end):
                    yield from _judged(self._rules[index], view, start, end, mask)
        chain.behind = {
            regex: view.start_of(view.character(min(begin, len(view.data))), length) for regex, begin in behind.items()
        }

    def _present(self, view: View) -> int:
        """The bits of the patterns whose context words may occur in `view`, and `ALWAYS`."""
        mask = ALWAYS
        if self._contexts is not None:
            for place in self._contexts.Match(view.data, True):
                mask |= self._context_bits[place]
        return mask

    def _matches(
        self, view: View, shape: bytes, region: Region, behind: dict[int, int], mask: int
    ) -> Iterator[tuple[int, int, int]]:
        """Regex and characters of each match in `region`; `behind` says where each regex goes on, in bytes."""
        data, end = view.data, view.byte(region.end)
        piece = Piece(data, shape, view.byte(region.first), view.byte(region.last), end)
        for index, spans, last in self._candidates.hits(piece, mask):
            rule = self._rules[index][0]
            if rule.max_length > region.longest:
                continue
            begin = behind.get(index, 0)
            match = (
                spans if spans[0][0] >= begin else rule.search(ANYWHERE, data, begin, end) if begin < last else _NONE
            )
            while 0 <= match[0][0] < last:
                begin = max(match[0][1], match[0][0] + 1)
                start, stop = match[rule.shape.group]
                if start < stop:
                    yield index, view.character(start), view.character(stop)
                match = rule.search(ANYWHERE, data, begin, end) if begin < last else _NONE
            if begin:
                behind[index] = begin


def _judged(rules: Sequence[Rule], view: View, start: int, end: int, mask: int) -> Iterator[Finding]:
    value = view.text[start:end]
    for rule in rules:
        possible = bool(rule.context & mask)
        if rule.shape.needs_context and not possible:
            continue
        near = partial(_near, rule, view, start, end) if possible else _nowhere
        score = matching.judge(rule.shape, value, near)
        if score is not None:
            yield Finding(start, end, rule.entity_type, score, rule.source)


def _near(rule: Rule, view: View, start: int, end: int) -> bool:
    """Whether a context word is near, as `matching.score` says it."""
    for first, last in (
        (max(0, start - CONTEXT_BEFORE), start),
        (end, min(len(view), end + CONTEXT_AFTER)),
    ):
        piece = view.data[view.byte(first) : view.byte(last)]
        if rule.context_search(ANYWHERE, piece, 0, len(piece))[0][0] >= 0:
            return True
    return False


def _nowhere() -> bool:
    return False


def _compiled(patterns: Sequence[Pattern]) -> Iterator[tuple[Shape, Rule]]:
    for number, pattern in enumerate(patterns):
        context = matching.compile_context(pattern.context)
        bit = 0 if context is None else ALWAYS << (number + 1)
        words = _never if context is None else context._regexp.Match
        for written in pattern.shapes:
            for shape in _spellings(written):
                try:
                    compiled = matching.compile_shape(shape, context)
                except re2.error as error:
                    raise BadPattern(pattern.id, spoken(error)) from None
                search = compiled.regex._regexp.Match
                yield shape, Rule(search, compiled, bit, words, pattern.entity_type, pattern.id, shape.max_length)


def _by_regex(compiled: Iterable[tuple[Shape, Rule]]) -> dict[tuple[str, bool], list[Rule]]:
    regexes: dict[tuple[str, bool], list[Rule]] = {}
    for shape, rule in compiled:
        regexes.setdefault((shape.regex, shape.ignore_case), []).append(rule)
    return regexes


def _contexts(compiled: Iterable[tuple[Shape, Rule]]) -> tuple[Any, list[int]]:
    """A filter for context words, and the bit of each of its regexes."""
    regexes = {rule.context: rule.shape.context for _, rule in compiled if rule.shape.context is not None}
    if not regexes:
        return None, []
    literals = re2.Filter()
    for regex in regexes.values():
        literals.Add(regex.pattern, matching.options(ignore_case=True))
    literals.Compile()
    return literals._filter, list(regexes)


def _begins_word(shape: Shape) -> bool:
    """Whether the opening stands at a word boundary."""
    return shape.regex.startswith((r"\b", r"(?i)\b")) and shape.opening is not None and shape.opening[0].isalnum()


def _spellings(shape: Shape) -> Iterator[Shape]:
    """A regex in a script that has look-alikes is looked for as the view may read it, too."""
    yield shape
    latin = shape.regex.translate(_latin)
    if latin != shape.regex:
        opening = None if shape.opening is None else shape.opening.translate(_latin)
        yield msgspec.structs.replace(shape, regex=latin, opening=opening)


def spoken(error: re2.error) -> str:
    """RE2's own words: its errors hold bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
