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
from gatehouse.detection.candidates import ALWAYS, ANYWHERE, HERE, Candidates, Piece, Regex, Search, Spans
from gatehouse.detection.findings import Finding
from gatehouse.detection.matching import CompiledShape
from gatehouse.detection.normalise import LOOKALIKES, View
from gatehouse.detection.openings import Openings, Reach
from gatehouse.detection.pattern import CONTEXT_AFTER, CONTEXT_BEFORE, Pattern, Shape
from gatehouse.detection.skeleton import SKELETON, longest

_latin: Final = str.maketrans(LOOKALIKES)


class BadPattern(ValueError):
    """RE2 does not take a pattern's regex; its own words say why."""

    def __init__(self, pattern_id: str, reason: str) -> None:
        super().__init__(reason)
        self.pattern_id = pattern_id


class Rule(NamedTuple):
    """One shape of a pattern. `context` is the bit that says that one of the pattern's context words is there."""

    shape: CompiledShape
    context: int
    entity_type: str
    source: str


class Same(NamedTuple):
    """A regex and all rules that look for it. `contexts` are all their bits; a match has `longest` characters at most
    and is looked for in the bytes of a view."""

    search: Search
    group: int
    longest: int
    contexts: int
    rules: Sequence[Rule]


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
        self._regexes: list[Same] = []
        regexes: list[Regex] = []
        for index, ((regex, ignore_case), same) in enumerate(_by_regex(compiled).items()):
            self._regexes.append(same)
            mask = 0
            for rule in same.rules:
                mask |= rule.context if rule.shape.needs_context else ALWAYS
            regexes.append(Regex(index, regex, ignore_case, same.search, mask, same.longest))
        self._candidates = Candidates(regexes)
        words: dict[str, int] = {}
        for bit, pattern in _numbered(patterns):
            for word in pattern.context:
                words[word] = words.get(word, 0) | bit
        self._contexts = Contexts(words)
        self.openings = Openings(
            Reach(shape.max_length, shape.opening, not _begins_word(shape)) for shape, _ in compiled
        )

    def findings(self, view: View, regions: Iterable[Region], chain: Chain, length: int, base: int) -> list[Finding]:
        """What is found in `regions` of `view`, a view of what begins at `base` and has `length` code points."""
        found: list[Finding] = []
        standing = self._contexts.standing(view)
        mask = standing.all_bits | ALWAYS
        shape = view.data.translate(SKELETON)
        behind = {regex: view.byte(view.at(known)) for regex, known in chain.behind.items()}
        for region in regions:
            piece = Piece(view.data, shape, view.byte(region.first), view.byte(region.last), view.byte(region.end))
            for index, spans, last in self._candidates.hits(piece, mask, behind):
                same = self._regexes[index]
                if same.longest <= region.longest:
                    behind[index] = end = piece.end
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
