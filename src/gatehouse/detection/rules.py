"""Patterns compiled together: what each of them finds, as `matching` defines it, in about one pass over the text.

A shape's matches do not overlap: the next begins behind the last. Where it ended is the state of a `Chain`, so that a
text in pieces gives what the whole one does. Context words are looked for once: a shape that needs one is not asked
where there is none, and no score is raised.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import re2

from gatehouse.detection import matching
from gatehouse.detection.candidates import ALWAYS, ANYWHERE, HERE, Candidates, Hit, Piece, Regex, Search, Spans
from gatehouse.detection.contexts import NONE, Contexts
from gatehouse.detection.findings import Finding
from gatehouse.detection.matching import CompiledShape
from gatehouse.detection.normalise import LOOKALIKES, View
from gatehouse.detection.openings import Openings, Reach
from gatehouse.detection.pattern import Pattern, Shape
from gatehouse.detection.skeleton import SKELETON, longest

_latin: Final = str.maketrans(LOOKALIKES)


class BadPattern(ValueError):
    """RE2 does not take a pattern's regex; its own words say why."""

    def __init__(self, pattern_id: str, reason: str) -> None:
        super().__init__(reason)
        self.pattern_id = pattern_id


class Rule(NamedTuple):
    """One shape of a pattern. `context` is the bit of the pattern's context words, 0 where it has none."""

    shape: CompiledShape
    context: int
    entity_type: str
    source: str
    max_length: int


class Same(NamedTuple):
    """A regex and the rules that share it: it is looked for once. `group` is the finding, `contexts` are the rules'
    bits, `longest` is the longest match in characters."""

    search: Search
    group: int
    contexts: int
    longest: int
    rules: Sequence[Rule]


class Chain(msgspec.Struct, gc=False):
    """Where, in code points of the source, the last match of each regex ended."""

    behind: dict[int, int] = {}

    def over(self, view: View) -> dict[int, int]:
        """The same in bytes of a view."""
        return {regex: view.byte(view.at(end)) for regex, end in self.behind.items()}

    def keep(self, behind: Mapping[int, int], view: View, length: int) -> None:
        """`length` is the source's."""
        size = len(view.data)
        self.behind = {regex: view.start_of(view.character(min(end, size)), length) for regex, end in behind.items()}

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

    def takes(self, seams: Sequence[int], start: int, end: int) -> bool:
        place = bisect_left(seams, start)
        return place < len(seams) and seams[place] + self.width <= end


class Rules:
    """Compiled once, when patterns are loaded; may be used by many threads. Raises `BadPattern`."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        words: dict[str, int] = {}
        compiled: list[tuple[Shape, Rule]] = []
        for place, pattern in enumerate(patterns, 1):
            bit = ALWAYS << place if pattern.context else 0
            for word in pattern.context:
                words[word] = words.get(word, 0) | bit
            compiled += _compiled(pattern, bit)
        self._contexts = Contexts(words)
        self._same: list[Same] = []
        regexes: list[Regex] = []
        for number, ((regex, ignore_case), rules) in enumerate(_by_regex(compiled).items()):
            contexts = mask = 0
            for rule in rules:
                contexts |= rule.context
                mask |= rule.context if rule.shape.needs_context else ALWAYS
            most = max(rule.max_length for rule in rules)
            shape = rules[0].shape
            same = Same(shape.regex._regexp.Match, shape.group, contexts, most, rules)
            self._same.append(same)
            regexes.append(Regex(number, regex, ignore_case, same.search, mask, most))
        self._candidates = Candidates(regexes)
        self.openings = Openings(
            Reach(shape.max_length, shape.opening, not _begins_word(shape)) for shape, _ in compiled
        )

    def findings(self, view: View, regions: Iterable[Region], behind: dict[int, int], base: int) -> list[Finding]:
        """What is found in `regions`, in order, of a view of what begins at `base`. `behind` says where each regex goes
        on, in bytes of the view, and is kept."""
        shape = view.data.translate(SKELETON)
        look = _Look(view, behind, base)
        for region in regions:
            look.standing = self._contexts.standing(view, region.first, region.end)
            first, last, end = view.byte(region.first), view.byte(region.last), view.byte(region.end)
            seams = None if region.seams is None else [view.byte(seam) for seam in region.seams]
            piece = Piece(view.data, shape, first, last, end, region.longest, seams, region.width)
            for hit in self._candidates.hits(piece, look.standing.bits_of_all | ALWAYS, behind):
                same = self._same[hit.number]
                look.follow(same, hit, region, piece.sight(same.longest))
        return look.found


class _Look:
    """One look at a view, and what it found: findings of the caller's text. `standing` are a region's context words."""

    __slots__ = ("_base", "_behind", "_view", "found", "standing")

    def __init__(self, view: View, behind: dict[int, int], base: int) -> None:
        self._view = view
        self._behind = behind
        self._base = base
        self.standing = NONE
        self.found: list[Finding] = []

    def follow(self, same: Same, hit: Hit, region: Region, end: int) -> None:
        """A regex's matches in a region, `hit` and those behind it; they see what is before `end`."""
        view, (number, spans, last) = self._view, hit
        begin = spans[0][0]
        while 0 <= begin < last:
            place = max(spans[0][1], begin + 1)
            if place - begin > same.longest:
                spans, place = _within(same, view, spans, place)
            start, stop = spans[same.group]
            if start < stop:
                start, stop = view.character(start), view.character(stop)
                if region.seams is None or region.takes(region.seams, start, stop):
                    self._judge(same, start, stop)
            self._behind[number] = place
            if place >= last:
                break
            spans = same.search(ANYWHERE, view.data, place, end)
            begin = spans[0][0]

    def _judge(self, same: Same, start: int, stop: int) -> None:
        value = self._view.text[start:stop]
        near = self.standing.near(start, stop) if same.contexts & self.standing.bits_of_all else 0
        for shape, context, entity_type, source, _ in same.rules:
            score = matching.judge(shape, value, near=near & context != 0)
            if score is not None:
                first, behind = self._view.origin(start, stop)
                self.found.append(Finding(self._base + first, self._base + behind, entity_type, score, source))


def _within(same: Same, view: View, match: Spans, behind: int) -> tuple[Spans, int]:
    """A match that may be longer than its shape promises, no longer than that, and where the next one begins: a stream
    shows no more of it."""
    begin = match[0][0]
    end = view.byte(min(view.character(begin) + same.longest, len(view)))
    if match[0][1] <= end:
        return match, behind
    match = same.search(HERE, view.data, begin, end)
    # Nothing is found at its end.
    return (match, match[0][1]) if match[0][0] >= 0 else (((end, end),) * (same.group + 1), begin + 1)


def _compiled(pattern: Pattern, context: int) -> Iterator[tuple[Shape, Rule]]:
    for written in pattern.shapes:
        for shape in _spellings(written):
            try:
                compiled = matching.compile_shape(shape)
            except re2.error as error:
                raise BadPattern(pattern.id, spoken(error)) from None
            # A promise may be wider than the regex.
            most = min(shape.max_length, longest(shape.regex) or shape.max_length)
            kept = msgspec.structs.replace(shape, max_length=most)
            yield kept, Rule(compiled, context, pattern.entity_type, pattern.id, most)


def _by_regex(compiled: Iterable[tuple[Shape, Rule]]) -> dict[tuple[str, bool], list[Rule]]:
    regexes: dict[tuple[str, bool], list[Rule]] = {}
    for shape, rule in compiled:
        regexes.setdefault((shape.regex, shape.ignore_case), []).append(rule)
    return regexes


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
