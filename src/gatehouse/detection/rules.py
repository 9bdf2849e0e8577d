"""Patterns compiled together. Each returns the findings that `matching` defines, in about one pass over the text.

A `MatchChain` records where each shape's next match may begin, so that a text in pieces gives the same findings as the
whole text. Context words are searched for once. A shape that needs one is skipped where there is none.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec
import re2

from gatehouse.detection.findings import Finding
from gatehouse.detection.normalise import LOOKALIKES, View
from gatehouse.detection.pattern import CONTEXT_AFTER, CONTEXT_BEFORE, Pattern, Shape
from gatehouse.detection.regex import re2_syntax
from gatehouse.detection.regex.byte_search import (
    ANYWHERE,
    HERE,
    Search,
    Spans,
    not_empty,
    search_of,
)
from gatehouse.detection.regex.skeleton import SKELETON, longest
from gatehouse.detection.search import matching
from gatehouse.detection.search.as_written import AsWritten
from gatehouse.detection.search.beginnings import beginnings
from gatehouse.detection.search.candidates import (
    ALWAYS,
    CandidateMatch,
    Candidates,
    Regex,
    SearchedPiece,
)
from gatehouse.detection.search.context_words import Contexts, Near
from gatehouse.detection.search.growth import Growth
from gatehouse.detection.search.matching import CompiledShape
from gatehouse.detection.search.openings import Openings, Reach

_latin: Final = str.maketrans(LOOKALIKES)


class BadPattern(ValueError):
    """RE2 does not compile a pattern's regex. The message is RE2's."""

    def __init__(self, pattern_id: str, reason: str) -> None:
        super().__init__(reason)
        self.pattern_id = pattern_id


class Rule(NamedTuple):
    """One shape of a pattern. `context` is the bit of the pattern's context words, 0 if it has none; `longest` is the
    longest match in characters."""

    shape: CompiledShape
    search: Search
    context: int
    entity_type: str
    source: str
    longest: int


class MatchChain(msgspec.Struct, gc=False):
    """The position in code points of the source from which each regex may match again. `covered`: the position up to
    which a view has been searched, if only parts of it are."""

    resume: dict[int, int] = {}
    covered: int = 0

    def over(self, view: View, offset: int = 0) -> dict[int, int]:
        """Return the positions in bytes of a view of the text from `offset` on."""
        return {regex: view.byte(view.at(max(0, end - offset))) for regex, end in self.resume.items()}

    def keep(self, resume: Mapping[int, int], view: View, length: int, offset: int = 0) -> None:
        """Store the positions of a view. `length` is that of its source."""
        size = len(view.data)
        self.resume = {
            regex: offset + view.start_of(view.character(min(end, size)), length) for regex, end in resume.items()
        }

    def forget(self, gone: int, settled: int) -> None:
        """Remove the first `gone` code points of the source. Positions before `settled` of the rest are dropped."""
        if self.resume:
            self.resume = {regex: end - gone for regex, end in self.resume.items() if end - gone > settled}
        self.covered = max(0, self.covered - gone)


#: Characters after an escape within which a match may have its context word next to the escape.
AFTER_ESCAPE: Final = CONTEXT_BEFORE + 1


#: Characters after the end of a match that decide about it, for a pattern with context words.
CONTEXT_AHEAD: Final = CONTEXT_AFTER + 2


class Region(NamedTuple):
    """Characters of a view: where a match may begin, which it may read, and its maximum length. With `seams` only a
    finding counts that contains one of them and `width` characters from there on. With `beside` only one counts that
    one of those positions affects, within it or near it. A match that begins before `since` only determines where the
    next one begins. A match waits for a context word that may follow `known`."""

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
        """Return whether a finding counts at its position."""
        if self.seams is None:
            return True
        place = bisect_left(self.seams, start)
        return place < len(self.seams) and self.seams[place] + self.width <= end

    def decides(self, begin: int, end: int, ahead: int) -> bool:
        """Return whether a finding counts at the position of its match. `ahead` characters after the end of the match
        affect it."""
        if begin < self.since:
            return False
        if self.beside is None:
            return True
        place = bisect_right(self.beside, begin - AFTER_ESCAPE)
        return place < len(self.beside) and self.beside[place] < end + ahead


class Rules:
    """Patterns compiled together. Compiled once, when patterns are loaded; thread-safe. Raises `BadPattern`, and
    `ValueError` if some of the patterns split at underscores and others do not."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        context_words: dict[str, int] = {}
        compiled: list[tuple[Shape, Rule]] = []
        as_written: list[tuple[Pattern, Shape]] = []
        for place, pattern in enumerate(patterns, 1):
            bit = ALWAYS << place if pattern.context else 0
            for word in pattern.context:
                context_words[word] = context_words.get(word, 0) | bit
            for shape, rule in _compiled(pattern, bit):
                if shape.as_written:
                    as_written.append((pattern, shape))
                # A decoded view has other ends than the text.
                if not shape.as_written or not re2_syntax.has_text_ends(re2_syntax.tokens(shape.regex)):
                    compiled.append((shape, rule))
        #: the search for matches of an organization's own patterns in unchanged texts; None if there are none
        self.as_written = AsWritten(as_written) if as_written else None
        self._contexts = Contexts(context_words)
        split_modes = {shape.splits_at_underscore for shape, _ in compiled}
        if len(split_modes) > 1:
            raise ValueError("patterns that split at underscores and patterns that do not need a matcher each")
        self._splits_at_underscore = True in split_modes
        self._rules = [rule for _, rule in compiled]
        #: the bits of the context words of each pattern
        self._context_bits: dict[str, int] = {}
        for rule in self._rules:
            self._context_bits[rule.source] = self._context_bits.get(rule.source, 0) | rule.context
        self._candidates = Candidates(
            [
                Regex(
                    number,
                    matching.searched_regex(shape),
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
            splits_at_underscore=self._splits_at_underscore,
        )
        #: the search for matches that may grow; None for an organization's own patterns
        self.growth = (
            None
            if as_written
            else Growth([shape for shape, _ in compiled], splits_at_underscore=self._splits_at_underscore)
        )
        #: literals with which the matches of some shapes begin
        self.beginnings = frozenset(chain.from_iterable(beginnings(shape.regex) for shape, _ in compiled))

    def findings(self, view: View, regions: Iterable[Region], resume: dict[int, int], base: int) -> list[Finding]:
        """Return the findings in `regions`, in order, of a view of the text from `base` on. `resume` maps each regex to
        the byte of the view where its search continues, and is updated."""
        return self.look(view, regions, resume, base)[0]

    def look(
        self, view: View, regions: Iterable[Region], resume: dict[int, int], base: int
    ) -> tuple[list[Finding], int | None]:
        """Return the findings, and the first character at which a match that waits for a context word begins. Later
        matches of its regex are not searched for."""
        data = view.data.translate(matching.UNDERSCORES) if self._splits_at_underscore else view.data
        outline = data.translate(SKELETON)
        scan = _ViewScan(view, data, resume, base)
        for region in regions:
            scan.words = Near(self._contexts, view, region.first, region.end)
            first, last, end = view.byte(region.first), view.byte(region.last), view.byte(region.end)
            seams = None if region.seams is None else [view.byte(seam) for seam in region.seams]
            known = region.known - CONTEXT_AHEAD + 1
            waiting_from = view.byte(max(0, known)) if region.known < sys.maxsize else sys.maxsize
            piece = SearchedPiece(data, outline, first, last, end, region.longest, seams, region.width, waiting_from)
            for hit in self._candidates.hits(piece, scan.words, resume):
                rule = self._rules[hit.number]
                scan.follow(rule, hit, region, piece.search_end(rule.longest))
        return scan.findings, scan.waiting

    def grows_from(self, view: View, first: int, end: int) -> int:
        """Return the first character from `first` on, or `end`, from which a match may begin that the text before `end`
        does not decide."""
        if self.growth is not None:
            return self.growth.growing(view, first, end)
        return end if self.as_written is None else self.as_written.begins(view, first, end)

    def has_none(self, text: bytes) -> bool:
        """Return whether no whole match is in a text, whatever surrounds it."""
        data = text.translate(matching.UNDERSCORES) if self._splits_at_underscore else text
        return self._candidates.first(data, data.translate(SKELETON), 0, len(data)) == len(data)

    def is_named(self, view: View, finding: Finding) -> bool:
        """Return whether a context word is near a finding in `view`."""
        context = self._context_bits.get(finding.source, 0)
        if not context:
            return False
        return context & self._contexts.standing(view, finding.start, finding.end).near(finding.start, finding.end) != 0


class _ViewScan:
    """One scan of a view, and its findings in the caller's text. `data` are the view's bytes as searched, `words` the
    context words of a region, `waiting` the start of the first match that waits for one."""

    __slots__ = ("_base", "_data", "_resume", "_view", "_waiting_rules", "findings", "waiting", "words")

    words: Near

    def __init__(self, view: View, data: bytes, resume: dict[int, int], base: int) -> None:
        self._view = view
        self._data = data
        self._resume = resume
        self._base = base
        self.findings: list[Finding] = []
        self.waiting: int | None = None
        self._waiting_rules: set[int] = set()

    def follow(self, rule: Rule, hit: CandidateMatch, region: Region, end: int) -> None:
        """Collect the matches of a regex in a region, beginning with `hit`. They read the text before `end`."""
        view, data, (number, spans, last) = self._view, self._data, hit
        shape, search = rule.shape, rule.search
        if number in self._waiting_rules:
            return
        begin = spans[0][0]
        while 0 <= begin < last:
            place = max(spans[0][1], begin + 1)
            if place - begin > rule.longest:
                spans, place = self._within(rule, spans, place)
            if rule.context and view.character(spans[0][1]) + CONTEXT_AHEAD > region.known:
                first = view.character(begin)
                self.waiting = first if self.waiting is None else min(self.waiting, first)
                self._waiting_rules.add(number)
                break
            start, stop = spans[shape.group]
            if start < stop:
                start, stop = view.character(start), view.character(stop)
                score = self._score(rule, start, stop)
                if score is None:
                    place = _next_character(data, begin) if shape.tries_again else place
                elif region.takes(start, stop) and self._decides(rule, region, begin, spans[0][1]):
                    first, last_end = view.origin(start, stop)
                    finding = Finding(self._base + first, self._base + last_end, rule.entity_type, score, rule.source)
                    self.findings.append(finding)
            self._resume[number] = place
            if place >= last:
                break
            spans = search(ANYWHERE, data, place, end)
            begin = spans[0][0]

    def _decides(self, rule: Rule, region: Region, begin: int, stop: int) -> bool:
        """Return whether the match in these bytes counts in a region."""
        if not region.since and region.beside is None:
            return True
        ahead = CONTEXT_AHEAD if rule.context else 1
        return region.decides(self._view.character(begin), self._view.character(stop), ahead)

    def _score(self, rule: Rule, start: int, stop: int) -> float | None:
        """Return the score of a match, or None if it is no finding."""
        context = rule.context
        near = context != 0 and self.words.have(context) and context & self.words.standing.near(start, stop) != 0
        score = matching.judge(rule.shape, self._view.text[start:stop], near=near)
        return score if score is None or matching.allowed_before(rule.shape, self._view.text, start) else None

    def _within(self, rule: Rule, match: Spans, next_begin: int) -> tuple[Spans, int]:
        """Return a match cut to its shape's maximum length, and where the next one begins. A stream shows no more of
        it."""
        view, begin = self._view, match[0][0]
        end = view.byte(min(view.character(begin) + rule.longest, len(view)))
        if match[0][1] <= end:
            return match, next_begin
        match = rule.search(HERE, self._data, begin, end)
        # There is no match at its end.
        return (match, match[0][1]) if match[0][0] >= 0 else (((end, end),) * (rule.shape.group + 1), begin + 1)


def _next_character(data: bytes, begin: int) -> int:
    place = begin + 1
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


def _compiled(pattern: Pattern, context: int) -> Iterator[tuple[Shape, Rule]]:
    for pattern_shape in pattern.shapes:
        for shape in _spellings(pattern_shape):
            try:
                compiled = matching.compile_shape(shape)
            except re2.error as error:
                raise BadPattern(pattern.id, error_message(error)) from None
            # `max_length` may be longer than the longest match of the regex.
            max_length = min(shape.max_length, longest(shape.regex) or shape.max_length)
            bounded = msgspec.structs.replace(shape, max_length=max_length)
            search = search_of(compiled.regex)
            if shape.as_written and (character := re2_syntax.any_character(re2_syntax.tokens(shape.regex))) is not None:
                search = not_empty(search, search_of(re2.compile(character, matching.options())))
            yield bounded, Rule(compiled, search, context, pattern.entity_type, pattern.id, max_length)


def _begins_word(shape: Shape) -> bool:
    """Return whether the opening is at a word boundary."""
    return shape.regex.startswith((r"\b", r"(?i)\b")) and shape.opening is not None and shape.opening[0].isalnum()


def _spellings(shape: Shape) -> Iterator[Shape]:
    """Yield the shape, and its Latin spelling if its script has look-alikes, since the view may read it so."""
    yield shape
    latin = shape.regex.translate(_latin)
    if latin != shape.regex:
        opening = None if shape.opening is None else shape.opening.translate(_latin)
        yield msgspec.structs.replace(shape, regex=latin, opening=opening)


def error_message(error: re2.error) -> str:
    """Return the message of RE2, whose errors contain bytes."""
    message = error.args[0] if error.args else ""
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)
