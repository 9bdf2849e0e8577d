"""Patterns compiled together: what each of them finds, as `matching` defines it, in about one pass over the text.

Where a shape's next match may begin is the state of a `Chain`, so that a text in pieces gives what the whole one does.
Context words are looked for once: a shape that needs one is not asked where there is none, and no score is raised.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec
import re2

from gatehouse.detection import matching, re2_syntax
from gatehouse.detection.as_written import AsWritten
from gatehouse.detection.beginnings import beginnings
from gatehouse.detection.candidates import ALWAYS, Candidates, Hit, Piece, Regex
from gatehouse.detection.contexts import Contexts, Near
from gatehouse.detection.findings import Finding
from gatehouse.detection.growth import Growth
from gatehouse.detection.matching import CompiledShape
from gatehouse.detection.normalise import LOOKALIKES, View
from gatehouse.detection.openings import Openings, Reach
from gatehouse.detection.pattern import CONTEXT_AFTER, CONTEXT_BEFORE, Pattern, Shape
from gatehouse.detection.searching import ANYWHERE, HERE, Search, Spans, not_empty, search_of
from gatehouse.detection.skeleton import SKELETON, longest

_latin: Final = str.maketrans(LOOKALIKES)


class BadPattern(ValueError):
    """RE2 does not take a pattern's regex; its own words say why."""

    def __init__(self, pattern_id: str, reason: str) -> None:
        super().__init__(reason)
        self.pattern_id = pattern_id


class Rule(NamedTuple):
    """One shape of a pattern. `context` is the bit of the pattern's context words, 0 where it has none; `longest` is
    the longest match in characters."""

    shape: CompiledShape
    search: Search
    context: int
    entity_type: str
    source: str
    longest: int


class Chain(msgspec.Struct, gc=False):
    """From where on, in code points of the source, each regex may match again. `covered`: up to where matches were
    looked for in a view of which only parts are."""

    behind: dict[int, int] = {}
    covered: int = 0

    def over(self, view: View, offset: int = 0) -> dict[int, int]:
        """The same in bytes of a view of what begins at `offset`."""
        return {regex: view.byte(view.at(max(0, end - offset))) for regex, end in self.behind.items()}

    def keep(self, behind: Mapping[int, int], view: View, length: int, offset: int = 0) -> None:
        """`length` is that of what the view is of."""
        size = len(view.data)
        self.behind = {
            regex: offset + view.start_of(view.character(min(end, size)), length) for regex, end in behind.items()
        }

    def forget(self, gone: int, settled: int) -> None:
        """The source lost its first `gone` code points; what ended before `settled` of the rest says nothing more."""
        if self.behind:
            self.behind = {regex: end - gone for regex, end in self.behind.items() if end - gone > settled}
        self.covered = max(0, self.covered - gone)


#: How far behind an escape a match begins that may have a context word beside the escape.
BEHIND_ESCAPE: Final = CONTEXT_BEFORE + 1


#: What decides about a match behind its end, in characters, where its pattern has context words.
CONTEXT_AHEAD: Final = CONTEXT_AFTER + 2


class Region(NamedTuple):
    """Characters of a view: where a match may begin, which it may see, and how long it may be. With `seams` only a
    finding counts that holds one of them, and `width` characters from there on; with `beside` only one that one of
    those decides about, within it or near it. A match that begins before `since` only says where the next one does. A
    context word that may come behind `known` is waited for."""

    first: int
    last: int
    end: int
    longest: int = sys.maxsize
    seams: Sequence[int] | None = None
    width: int = 1
    since: int = 0
    beside: Sequence[int] | None = None
    known: int = sys.maxsize

    def takes(self, start: int, end: int) -> bool:
        """Whether a finding counts for where it is."""
        if self.seams is None:
            return True
        place = bisect_left(self.seams, start)
        return place < len(self.seams) and self.seams[place] + self.width <= end

    def decides(self, begin: int, end: int, ahead: int) -> bool:
        """Whether it counts for where its match is, about which `ahead` characters behind its end decide."""
        if begin < self.since:
            return False
        if self.beside is None:
            return True
        place = bisect_right(self.beside, begin - BEHIND_ESCAPE)
        return place < len(self.beside) and self.beside[place] < end + ahead


class Rules:
    """Compiled once, when patterns are loaded; may be used by many threads. Raises `BadPattern`, and `ValueError` where
    some of the patterns split at underscores and others do not."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        words: dict[str, int] = {}
        compiled: list[tuple[Shape, Rule]] = []
        own: list[tuple[Pattern, Shape]] = []
        for place, pattern in enumerate(patterns, 1):
            bit = ALWAYS << place if pattern.context else 0
            for word in pattern.context:
                words[word] = words.get(word, 0) | bit
            for shape, rule in _compiled(pattern, bit):
                if shape.as_written:
                    own.append((pattern, shape))
                # What is seen through something has other ends than the text.
                if not shape.as_written or not re2_syntax.has_text_ends(re2_syntax.tokens(shape.regex)):
                    compiled.append((shape, rule))
        #: finds what an organization's own patterns match in texts as they are written; None where there are none
        self.as_written = AsWritten(own) if own else None
        self._contexts = Contexts(words)
        splitting = {shape.splits_at_underscore for shape, _ in compiled}
        if len(splitting) > 1:
            raise ValueError("patterns that split at underscores and patterns that do not need a matcher each")
        self._splits = True in splitting
        self._rules = [rule for _, rule in compiled]
        #: the bits of the context words of each pattern
        self._context_of: dict[str, int] = {}
        for rule in self._rules:
            self._context_of[rule.source] = self._context_of.get(rule.source, 0) | rule.context
        self._candidates = Candidates(
            [
                Regex(
                    number,
                    matching.searched(shape),
                    shape.ignore_case,
                    rule.search,
                    rule.context if shape.needs_context else ALWAYS,
                    rule.longest,
                    rule.source,
                )
                for number, (shape, rule) in enumerate(compiled)
            ]
        )
        self.openings = Openings(
            (Reach(shape.max_length, shape.opening, not _begins_word(shape)) for shape, _ in compiled),
            splits_at_underscore=self._splits,
        )
        #: finds what may still grow; None for an organization's own patterns
        self.growth = None if own else Growth([shape for shape, _ in compiled], splits_at_underscore=self._splits)
        #: what each match of some of the shapes begins with
        self.beginnings = frozenset(chain.from_iterable(beginnings(shape.regex) for shape, _ in compiled))

    def findings(self, view: View, regions: Iterable[Region], behind: dict[int, int], base: int) -> list[Finding]:
        """What is found in `regions`, in order, of a view of what begins at `base`. `behind` says where each regex goes
        on, in bytes of the view, and is kept."""
        return self.look(view, regions, behind, base)[0]

    def look(
        self, view: View, regions: Iterable[Region], behind: dict[int, int], base: int
    ) -> tuple[list[Finding], int | None]:
        """The same, and the first character from which a match that waits for a context word begins: those of its regex
        from there on are not looked for."""
        data = view.data.translate(matching.UNDERSCORES) if self._splits else view.data
        shape = data.translate(SKELETON)
        look = _Look(view, data, behind, base)
        for region in regions:
            look.words = Near(self._contexts, view, region.first, region.end)
            first, last, end = view.byte(region.first), view.byte(region.last), view.byte(region.end)
            seams = None if region.seams is None else [view.byte(seam) for seam in region.seams]
            known = region.known - CONTEXT_AHEAD + 1
            waits = view.byte(max(0, known)) if region.known < sys.maxsize else sys.maxsize
            piece = Piece(data, shape, first, last, end, region.longest, seams, region.width, waits)
            for hit in self._candidates.hits(piece, look.words, behind):
                rule = self._rules[hit.number]
                look.follow(rule, hit, region, piece.sight(rule.longest))
        return look.found, look.waiting

    def grows_from(self, view: View, first: int, end: int) -> int:
        """The first character from `first` on, or `end`, from which a match may begin that what is before `end` does
        not decide about."""
        if self.growth is not None:
            return self.growth.growing(view, first, end)
        return end if self.as_written is None else self.as_written.begins(view, first, end)

    def has_none(self, text: bytes) -> bool:
        """Whether no whole match is in a text, whatever stands around it."""
        data = text.translate(matching.UNDERSCORES) if self._splits else text
        return self._candidates.first(data, data.translate(SKELETON), 0, len(data)) == len(data)

    def is_named(self, view: View, found: Finding) -> bool:
        """Whether a word of context is near what was found in `view`."""
        context = self._context_of.get(found.source, 0)
        if not context:
            return False
        return context & self._contexts.standing(view, found.start, found.end).near(found.start, found.end) != 0


class _Look:
    """One look at a view, and what it found: findings of the caller's text. `data` are the view's bytes as they are
    searched, `words` a region's context words, `waiting` where the first match begins that waits for one."""

    __slots__ = ("_base", "_behind", "_data", "_view", "_waiting", "found", "waiting", "words")

    words: Near

    def __init__(self, view: View, data: bytes, behind: dict[int, int], base: int) -> None:
        self._view = view
        self._data = data
        self._behind = behind
        self._base = base
        self.found: list[Finding] = []
        self.waiting: int | None = None
        self._waiting: set[int] = set()

    def follow(self, rule: Rule, hit: Hit, region: Region, end: int) -> None:
        """A regex's matches in a region, `hit` and those behind it; they see what is before `end`."""
        view, data, (number, spans, last) = self._view, self._data, hit
        shape, search = rule.shape, rule.search
        if number in self._waiting:
            return
        begin = spans[0][0]
        while 0 <= begin < last:
            place = max(spans[0][1], begin + 1)
            if place - begin > rule.longest:
                spans, place = self._within(rule, spans, place)
            if rule.context and view.character(spans[0][1]) + CONTEXT_AHEAD > region.known:
                first = view.character(begin)
                self.waiting = first if self.waiting is None else min(self.waiting, first)
                self._waiting.add(number)
                break
            start, stop = spans[shape.group]
            if start < stop:
                start, stop = view.character(start), view.character(stop)
                score = self._score(rule, start, stop)
                if score is None:
                    place = _next_character(data, begin) if shape.tries_again else place
                elif region.takes(start, stop) and self._decides(rule, region, begin, spans[0][1]):
                    first, behind = view.origin(start, stop)
                    found = Finding(self._base + first, self._base + behind, rule.entity_type, score, rule.source)
                    self.found.append(found)
            self._behind[number] = place
            if place >= last:
                break
            spans = search(ANYWHERE, data, place, end)
            begin = spans[0][0]

    def _decides(self, rule: Rule, region: Region, begin: int, stop: int) -> bool:
        """Whether the match in these bytes counts in a region."""
        if not region.since and region.beside is None:
            return True
        ahead = CONTEXT_AHEAD if rule.context else 1
        return region.decides(self._view.character(begin), self._view.character(stop), ahead)

    def _score(self, rule: Rule, start: int, stop: int) -> float | None:
        """The score of what the regex matched, or None: it is no finding."""
        context = rule.context
        near = context != 0 and self.words.have(context) and context & self.words.standing.near(start, stop) != 0
        score = matching.judge(rule.shape, self._view.text[start:stop], near=near)
        return score if score is None or matching.allowed_before(rule.shape, self._view.text, start) else None

    def _within(self, rule: Rule, match: Spans, behind: int) -> tuple[Spans, int]:
        """A match that may be longer than its shape promises, no longer than that, and where the next one begins: a
        stream shows no more of it."""
        view, begin = self._view, match[0][0]
        end = view.byte(min(view.character(begin) + rule.longest, len(view)))
        if match[0][1] <= end:
            return match, behind
        match = rule.search(HERE, self._data, begin, end)
        # Nothing is found at its end.
        return (match, match[0][1]) if match[0][0] >= 0 else (((end, end),) * (rule.shape.group + 1), begin + 1)


def _next_character(data: bytes, begin: int) -> int:
    place = begin + 1
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


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
            search = search_of(compiled.regex)
            if shape.as_written and (character := re2_syntax.any_character(re2_syntax.tokens(shape.regex))) is not None:
                search = not_empty(search, search_of(re2.compile(character, matching.options())))
            yield kept, Rule(compiled, search, context, pattern.entity_type, pattern.id, most)


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
