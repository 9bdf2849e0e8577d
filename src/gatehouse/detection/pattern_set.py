"""Compiles many patterns together and searches for all of them in about one pass over the text. The findings are the
same as those of the reference implementation in `search/matching.py`.

A `MatchChain` records where the next match of each shape may begin, so that a text in pieces gives the same findings as
the complete text. Context words are searched for once for all patterns. A shape that needs a context word is skipped
where there is none.
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
from gatehouse.detection.pattern import CONTEXT_CHARACTERS_AFTER, CONTEXT_CHARACTERS_BEFORE, Pattern, Shape
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
from gatehouse.detection.search.context_words import Contexts, NearbyWords
from gatehouse.detection.search.growth import Growth
from gatehouse.detection.search.matching import CompiledShape
from gatehouse.detection.search.openings import Openings, Reach

_latin: Final = str.maketrans(LOOKALIKES)


class BadPattern(ValueError):
    """RE2 cannot compile the regex of a pattern. The message is RE2's."""

    def __init__(self, pattern_id: str, reason: str) -> None:
        super().__init__(reason)
        self.pattern_id = pattern_id


class ShapeSearch(NamedTuple):
    """One shape of a pattern. `context` is the bit of the pattern's context words, or 0 if it has none. `longest` is
    the maximum match length in characters."""

    shape: CompiledShape
    search: Search
    context: int
    entity_type: str
    source: str
    longest: int


class MatchChain(msgspec.Struct, gc=False):
    """The positions at which the search in one view continues, in code points of the source.

    `resume` maps each regex to the position from which it may match again. `covered` is the position up to which the
    view has been searched, for views of which only some regions are searched."""

    resume: dict[int, int] = {}
    covered: int = 0

    def over(self, view: View, offset: int = 0) -> dict[int, int]:
        """Return `resume` in bytes of `view`, which begins at `offset` of the source."""
        return {regex: view.byte(view.at(max(0, end - offset))) for regex, end in self.resume.items()}

    def keep(self, resume: Mapping[int, int], view: View, length: int, offset: int = 0) -> None:
        """Set `resume` from positions in bytes of `view`. `length` is the length of the view's source."""
        size = len(view.data)
        self.resume = {
            regex: offset + view.start_of(view.character(min(end, size)), length) for regex, end in resume.items()
        }

    def forget(self, dropped: int, settled: int) -> None:
        """Subtract `dropped` from all positions, because the first `dropped` code points of the source were removed.
        Remove entries at or before `settled`, which counts from the new start."""
        if self.resume:
            self.resume = {regex: end - dropped for regex, end in self.resume.items() if end - dropped > settled}
        self.covered = max(0, self.covered - dropped)


#: An escape can affect a match that begins less than this many characters after it, because a context word may begin
#: right after the escape. In the plain view, the letter of the escape is part of that word.
AFTER_ESCAPE: Final = CONTEXT_CHARACTERS_BEFORE + 2


#: Number of characters after a match that may affect it, for a pattern with context words.
CONTEXT_AHEAD: Final = CONTEXT_CHARACTERS_AFTER + 2


class Region(NamedTuple):
    """The part of a view that is searched. All positions are characters of the view.

    Matches begin between `first` and `last`, read the text up to `end`, and have at most `longest` characters. If
    `seams` is set, a finding is reported only if it contains the `width` characters that begin at one of these
    positions. If `escapes` is set, a finding is reported only if an escape at one of these positions is within the
    match or near enough to affect it. A match that begins before `since` is not reported, but determines where the next
    match begins. The text is known up to `known`. A match is not decided while a context word for it may follow
    `known`."""

    first: int
    last: int
    end: int
    longest: int = sys.maxsize
    seams: Sequence[int] | None = None
    width: int = 1
    since: int = 0
    escapes: Sequence[int] | None = None
    known: int = sys.maxsize

    def contains_seam(self, start: int, end: int) -> bool:
        """Return whether the finding from `start` to `end` contains a seam as required. True if `seams` is None."""
        if self.seams is None:
            return True
        place = bisect_left(self.seams, start)
        return place < len(self.seams) and self.seams[place] + self.width <= end

    def counts(self, begin: int, end: int, ahead: int) -> bool:
        """Return whether a match from `begin` to `end` is reported. It must begin at `since` or later. If `escapes` is
        set, an escape must also be near enough to affect it. `ahead` is the number of characters after the match that
        affect it."""
        if begin < self.since:
            return False
        if self.escapes is None:
            return True
        place = bisect_right(self.escapes, begin - AFTER_ESCAPE)
        return place < len(self.escapes) and self.escapes[place] < end + ahead


class PatternSet:
    """Patterns that are compiled together and searched for together. They are compiled once, when they are loaded.
    Thread-safe. The constructor raises `BadPattern`, and raises `ValueError` if only some of the patterns split at
    underscores."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        context_words: dict[str, int] = {}
        compiled: list[tuple[Shape, ShapeSearch]] = []
        as_written: list[tuple[Pattern, Shape]] = []
        for place, pattern in enumerate(patterns, 1):
            bit = ALWAYS << place if pattern.context else 0
            for word in pattern.context:
                context_words[word] = context_words.get(word, 0) | bit
            for shape, entry in _compiled(pattern, bit):
                if shape.as_written:
                    as_written.append((pattern, shape))
                # A regex that is anchored to the ends of the text is searched for only in the unchanged text, because a
                # derived view may have other ends.
                if not shape.as_written or not re2_syntax.has_text_ends(re2_syntax.tokens(shape.regex)):
                    compiled.append((shape, entry))
        #: the search for matches of an organization's own patterns in unchanged texts; None if there are none
        self.as_written = AsWritten(as_written) if as_written else None
        self._contexts = Contexts(context_words)
        split_modes = {shape.splits_at_underscore for shape, _ in compiled}
        if len(split_modes) > 1:
            raise ValueError(
                "some of the patterns split at underscores and others do not: compile these two groups separately"
            )
        self._splits_at_underscore = True in split_modes
        self._entries = [entry for _, entry in compiled]
        #: maps each pattern to the bits of its context words
        self._context_bits: dict[str, int] = {}
        for entry in self._entries:
            self._context_bits[entry.source] = self._context_bits.get(entry.source, 0) | entry.context
        self._candidates = Candidates(
            [
                Regex(
                    number,
                    matching.searched_regex(shape),
                    shape.ignore_case,
                    entry.search,
                    entry.context if shape.needs_context else ALWAYS,
                    entry.longest,
                    entry.source,
                )
                for number, (shape, entry) in enumerate(compiled)
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
        #: literals with which matches begin, of the shapes that have such literals
        self.beginnings = frozenset(chain.from_iterable(beginnings(shape.regex) for shape, _ in compiled))

    def findings(self, view: View, regions: Iterable[Region], resume: dict[int, int], base: int) -> list[Finding]:
        """Return the findings in the `regions` of a view that begins at `base` of the text. The findings are in the
        order of the regions. `resume` maps each regex to the byte of the view where its search continues. This method
        updates `resume`."""
        return self.findings_and_waiting(view, regions, resume, base)[0]

    def findings_and_waiting(
        self, view: View, regions: Iterable[Region], resume: dict[int, int], base: int
    ) -> tuple[list[Finding], int | None]:
        """Return the findings, and the start of the first match that depends on a context word that may still arrive,
        or None. Later matches of the same regex are not searched for."""
        data = view.data.translate(matching.UNDERSCORES) if self._splits_at_underscore else view.data
        outline = data.translate(SKELETON)
        scan = _ViewScan(view, data, resume, base)
        for region in regions:
            scan.words = NearbyWords(self._contexts, view, region.first, region.end)
            first, last, end = view.byte(region.first), view.byte(region.last), view.byte(region.end)
            seams = None if region.seams is None else [view.byte(seam) for seam in region.seams]
            known = region.known - CONTEXT_AHEAD + 1
            waiting_from = view.byte(max(0, known)) if region.known < sys.maxsize else sys.maxsize
            piece = SearchedPiece(data, outline, first, last, end, region.longest, seams, region.width, waiting_from)
            for hit in self._candidates.hits(piece, scan.words, resume):
                entry = self._entries[hit.number]
                scan.follow(entry, hit, region, piece.search_end(entry.longest))
        return scan.findings, scan.waiting

    def grows_from(self, view: View, first: int, end: int) -> int:
        """Return the first position (at least `first`) at which an undecided match may begin: text after `end` can
        extend or complete this match. Return `end` if there is none. For an organization's own patterns, return the
        first position at which any match may begin, including a complete one."""
        if self.growth is not None:
            return self.growth.growing(view, first, end)
        return end if self.as_written is None else self.as_written.begins(view, first, end)

    def has_none(self, text: bytes) -> bool:
        """Return whether no match is found if `text` is searched alone, without the text around it."""
        data = text.translate(matching.UNDERSCORES) if self._splits_at_underscore else text
        return self._candidates.first(data, data.translate(SKELETON), 0, len(data)) == len(data)

    def is_named(self, view: View, finding: Finding) -> bool:
        """Return whether a context word is near a finding in `view`."""
        context = self._context_bits.get(finding.source, 0)
        if not context:
            return False
        return (
            context & self._contexts.words_near(view, finding.start, finding.end).bits_near(finding.start, finding.end)
            != 0
        )


class _ViewScan:
    """One scan of a view. `data` are the bytes of the view as they are searched. `words` are the context words near the
    current region. `findings` have positions in the caller's text. `waiting` is the start of the first match that
    depends on a context word that may still arrive, or None."""

    __slots__ = ("_base", "_data", "_resume", "_view", "_waiting_rules", "findings", "waiting", "words")

    words: NearbyWords

    def __init__(self, view: View, data: bytes, resume: dict[int, int], base: int) -> None:
        self._view = view
        self._data = data
        self._resume = resume
        self._base = base
        self.findings: list[Finding] = []
        self.waiting: int | None = None
        self._waiting_rules: set[int] = set()

    def follow(self, entry: ShapeSearch, hit: CandidateMatch, region: Region, end: int) -> None:
        """Collect the matches of a regex in a region, starting with `hit`. Only the text before `end` is searched."""
        view, data, (number, spans, last) = self._view, self._data, hit
        shape, search = entry.shape, entry.search
        if number in self._waiting_rules:
            return
        begin = spans[0][0]
        while 0 <= begin < last:
            place = max(spans[0][1], begin + 1)
            if place - begin > entry.longest:
                spans, place = self._within(entry, spans, place)
            if entry.context and view.character(spans[0][1]) + CONTEXT_AHEAD > region.known:
                first = view.character(begin)
                self.waiting = first if self.waiting is None else min(self.waiting, first)
                self._waiting_rules.add(number)
                break
            start, stop = spans[shape.group]
            if start < stop:
                start, stop = view.character(start), view.character(stop)
                score = self._score(entry, start, stop)
                if score is None:
                    place = _next_character(data, begin) if shape.tries_again else place
                elif region.contains_seam(start, stop) and self._counts(entry, region, begin, spans[0][1]):
                    first, last_end = view.origin(start, stop)
                    finding = Finding(self._base + first, self._base + last_end, entry.entity_type, score, entry.source)
                    self.findings.append(finding)
            self._resume[number] = place
            if place >= last:
                break
            spans = search(ANYWHERE, data, place, end)
            begin = spans[0][0]

    def _counts(self, entry: ShapeSearch, region: Region, begin: int, stop: int) -> bool:
        """Return whether the match from byte `begin` to byte `stop` is reported in a region."""
        if not region.since and region.escapes is None:
            return True
        ahead = CONTEXT_AHEAD if entry.context else 1
        return region.counts(self._view.character(begin), self._view.character(stop), ahead)

    def _score(self, entry: ShapeSearch, start: int, stop: int) -> float | None:
        """Return the score of a match, or None if the match is not a finding."""
        context = entry.context
        near = context != 0 and self.words.have(context) and context & self.words.positions.bits_near(start, stop) != 0
        score = matching.judge(entry.shape, self._view.text[start:stop], near=near)
        return score if score is None or matching.allowed_before(entry.shape, self._view.text, start) else None

    def _within(self, entry: ShapeSearch, match: Spans, next_begin: int) -> tuple[Spans, int]:
        """Return a match cut to the maximum length of its shape, and the byte from which the next match may begin. A
        stream holds back no more text than this length."""
        view, begin = self._view, match[0][0]
        end = view.byte(min(view.character(begin) + entry.longest, len(view)))
        if match[0][1] <= end:
            return match, next_begin
        match = entry.search(HERE, self._data, begin, end)
        # If no shorter match begins here, return an empty match at `end`.
        return (match, match[0][1]) if match[0][0] >= 0 else (((end, end),) * (entry.shape.group + 1), begin + 1)


def _next_character(data: bytes, begin: int) -> int:
    place = begin + 1
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


def _compiled(pattern: Pattern, context: int) -> Iterator[tuple[Shape, ShapeSearch]]:
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
            yield bounded, ShapeSearch(compiled, search, context, pattern.entity_type, pattern.id, max_length)


def _begins_word(shape: Shape) -> bool:
    """Return whether the opening of the shape always begins at a word boundary."""
    return shape.regex.startswith((r"\b", r"(?i)\b")) and shape.opening is not None and shape.opening[0].isalnum()


def _spellings(shape: Shape) -> Iterator[Shape]:
    """Yield the shape. If its regex has letters that look like Latin letters, also yield the shape with Latin letters,
    because the view may contain them."""
    yield shape
    latin = shape.regex.translate(_latin)
    if latin != shape.regex:
        opening = None if shape.opening is None else shape.opening.translate(_latin)
        yield msgspec.structs.replace(shape, regex=latin, opening=opening)


def error_message(error: re2.error) -> str:
    """Return the message of an RE2 error as text. RE2 stores it as bytes."""
    message = error.args[0] if error.args else ""
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)
