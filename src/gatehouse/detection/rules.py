"""Patterns compiled together: what each of them finds, as `matching` defines it, in about one pass over the text.

A shape's matches do not overlap: the next begins behind the last. Where it ended is the state of a `Chain`, so that a
text in pieces gives what the whole one does. Context words are looked for once: a shape that needs one is not asked
where there is none, and no score is raised.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import re2

from gatehouse.detection import matching
from gatehouse.detection.candidates import ALWAYS, ANYWHERE, Candidates, Regex, Search
from gatehouse.detection.findings import Finding
from gatehouse.detection.matching import CompiledShape
from gatehouse.detection.normalise import LOOKALIKES, View
from gatehouse.detection.openings import Openings, Reach
from gatehouse.detection.pattern import Pattern, Shape

_latin: Final = str.maketrans(LOOKALIKES)


class BadPattern(ValueError):
    """RE2 does not take a pattern's regex; its own words say why."""

    def __init__(self, pattern_id: str, reason: str) -> None:
        super().__init__(reason)
        self.pattern_id = pattern_id


class Rule(NamedTuple):
    """One shape of a pattern. `context` is the bit that says that the pattern's context words may occur; `alone` is the
    shape where they do not."""

    search: Search
    shape: CompiledShape
    alone: CompiledShape
    context: int
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
    """Characters of a view: where a match may begin, which it may see, and how long it may be."""

    first: int
    last: int
    end: int
    longest: int = sys.maxsize


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

    def contexts(self, view: View) -> int:
        """The bits of the patterns whose context words may occur in `view`, and `ALWAYS`."""
        mask = ALWAYS
        if self._contexts is not None:
            for place in self._contexts.Match(view.data, True):
                mask |= self._context_bits[place]
        return mask

    def findings(self, view: View, region: Region, chain: Chain, length: int, mask: int) -> Iterator[Finding]:
        """What is found in `region`, in characters of `view`. `length` is the source's, `mask` of `contexts`."""
        data, end = view.data, view.byte(region.end)
        behind = {regex: view.byte(view.at(known)) for regex, known in chain.behind.items()}
        hits = self._candidates.hits(data, view.byte(region.first), view.byte(region.last), end, mask=mask)
        for index, spans, last in hits:
            rules = self._rules[index]
            if rules[0].max_length > region.longest:
                continue
            begin = behind.get(index, 0)
            if spans[0][0] < begin:
                if begin >= last:
                    continue
                spans = rules[0].search(ANYWHERE, data, begin, end)
            while 0 <= spans[0][0] < last:
                begin = max(spans[0][1], spans[0][0] + 1)
                start, stop = spans[rules[0].shape.group]
                if start < stop:
                    yield from _judged(rules, view, view.character(start), view.character(stop), mask)
                if begin >= last:
                    break
                spans = rules[0].search(ANYWHERE, data, begin, end)
            behind[index] = begin
        chain.behind = {
            regex: view.start_of(view.character(min(begin, len(data))), length) for regex, begin in behind.items()
        }


def _judged(rules: Sequence[Rule], view: View, start: int, end: int, mask: int) -> Iterator[Finding]:
    for rule in rules:
        in_context = rule.context & mask
        if rule.shape.needs_context and not in_context:
            continue
        score = matching.score(rule.shape if in_context else rule.alone, view.text, start, end)
        if score is not None:
            yield Finding(start, end, rule.entity_type, score, rule.source)


def _compiled(patterns: Sequence[Pattern]) -> Iterator[tuple[Shape, Rule]]:
    for number, pattern in enumerate(patterns):
        context = matching.compile_context(pattern.context)
        bit = 0 if context is None else ALWAYS << (number + 1)
        for written in pattern.shapes:
            for shape in _spellings(written):
                try:
                    compiled = matching.compile_shape(shape, context)
                except re2.error as error:
                    raise BadPattern(pattern.id, spoken(error)) from None
                alone = compiled._replace(context=None)
                search = compiled.regex._regexp.Match
                yield shape, Rule(search, compiled, alone, bit, pattern.entity_type, pattern.id, shape.max_length)


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
