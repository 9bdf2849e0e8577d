"""Searches the unchanged text for an organization's own patterns. Returns all matches that RE2 returns, of any
length."""

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection.findings import Finding
from gatehouse.detection.normalise import View
from gatehouse.detection.pattern import CONTEXT_CHARACTERS_AFTER, CONTEXT_CHARACTERS_BEFORE, Pattern, Shape
from gatehouse.detection.regex import re2_syntax
from gatehouse.detection.regex.byte_search import (
    ANYWHERE,
    Search,
    Spans,
    search_of,
)
from gatehouse.detection.search import matching
from gatehouse.detection.search.matching import CompiledShape
from gatehouse.detection.search.walks import (
    SearchBudgetExceeded,
    Searches,
    StreamWalk,
    WalkBudget,
    matches,
    next_character,
)

#: A byte that does not occur in UTF-8. No part of a regex matches it, so no match spans it.
_SEPARATOR_BYTE: Final = b"\xff"
#: Number of characters after a match that may affect its score. A context word counts only within
#: `CONTEXT_CHARACTERS_AFTER`. The two characters after it show whether it is a whole word.
_CONTEXT_LOOKAHEAD: Final = CONTEXT_CHARACTERS_AFTER + 2
#: Maximum RE2 instructions of the shapes that are combined into one search.
_MAX_GROUP_INSTRUCTIONS: Final = 2_000
#: Size of the first and of the largest window in the search for the first possible match.
_MIN_WINDOW_BYTES: Final = 64
_MAX_WINDOW_BYTES: Final = 64 << 10
#: Maximum number of findings of one step of a search.
_FINDINGS_PER_STEP: Final = 1000


class SearchAborted(Exception):
    """The search for some patterns exceeds the search budget of a text. `sources` are the ids of these patterns."""

    def __init__(self, sources: Sequence[str]) -> None:
        super().__init__("the search for the pattern takes too long in this text")
        self.sources = tuple(sources)


class WrittenShape(NamedTuple):
    """One shape of a pattern, compiled. If the regex is anchored to the beginning or end of the text, `anywhere` finds
    the first byte at which the regex may match if these anchors are ignored (`re2_syntax.unfinished`). Otherwise
    `anywhere` is None."""

    pattern: Pattern
    shape: CompiledShape
    searches: Searches
    anywhere: Search | None


class WrittenGroup(NamedTuple):
    """Some shapes, and one combined search for all of them. `numbers` are the indexes of the shapes. The search
    ignores anchors to the beginning and end of the text, so it also works for joined texts. At the end of the searched
    data, it also finds the beginning of a match (`re2_syntax.unfinished`)."""

    numbers: list[int]
    search: Search


#: Start and end of a text in its source.
Part: TypeAlias = tuple[int, int]


class Texts:
    """The views of one or more texts of a source, joined into one byte string that is searched once. A match may span
    two texts only if they are one character apart. This character is read as a line break."""

    def __init__(self, views: Sequence[View], parts: Sequence[Part]) -> None:
        self._views = views
        self._parts = parts
        gaps = [
            b"\n" if following[0] - preceding[1] == 1 else _SEPARATOR_BYTE for preceding, following in pairwise(parts)
        ]
        pieces = chain.from_iterable((view.data, gap) for view, gap in zip(views, [*gaps, b""], strict=True))
        self.data = b"".join(pieces) if gaps else views[0].data
        self._starts = [0, *accumulate(len(view.data) + 1 for view in views)]

    def number(self, byte: int) -> int:
        """Return the index of the text that contains `byte`."""
        return bisect_right(self._starts, byte) - 1

    def ends(self, number: int) -> tuple[int, int]:
        """Return the byte range of the text with this index."""
        return self._starts[number], self._starts[number + 1] - 1

    def finding(self, written: WrittenShape, spans: Spans, offset: int = 0) -> Finding | None:
        """Return the finding of a match, or None if the finding would be empty. `spans` count bytes from `offset`."""
        start, stop = spans[written.shape.group]
        if start >= stop:
            return None
        start, stop = start + offset, stop + offset
        number = self.number(start)
        first, last = self.ends(number)
        if stop <= last:
            return _finding_in_view(written, self._views[number], start - first, stop - first, self._parts[number][0])
        begin = self._source_position(start)
        near = written.shape.context is not None and _in_context(
            written.shape, self._views[number], start - first, last - first
        )
        return _new_finding(written, begin, self._source_position(stop), near=near)

    def _source_position(self, byte: int) -> int:
        """Return the source position of a byte of `data`."""
        number = self.number(byte)
        view, (begin, end) = self._views[number], self._parts[number]
        return begin + view.start_of(view.character(byte - self._starts[number]), end - begin)


class AsWritten:
    """Patterns compiled for searching unchanged texts. Compiled once, when patterns are loaded; thread-safe."""

    def __init__(self, shapes: Sequence[tuple[Pattern, Shape]]) -> None:
        self._written = [_compiled(pattern, shape) for pattern, shape in shapes]
        self._groups = list(_groups(self._written))

    def in_texts(self, texts: Texts) -> Iterator[list[Finding]]:
        """Yield the findings in complete texts. Each step takes a few milliseconds. Raises `SearchAborted` after the
        last finding if a pattern exceeded its search budget."""
        findings: list[Finding] = []
        for finding in self._in_texts(texts):
            if finding is not None:
                findings.append(finding)
            if finding is None or len(findings) >= _FINDINGS_PER_STEP:
                yield findings
                findings = []

    def _in_texts(self, texts: Texts) -> Iterator[Finding | None]:
        """Yield each finding. Also yield None after each step without a finding and at the end of the search."""
        aborted_sources: dict[str, None] = {}
        for group in self._groups:
            first = yield from _first_candidate(group.search, texts.data, 0)
            for number in group.numbers if first < len(texts.data) else ():
                written = self._written[number]
                try:
                    yield from (
                        _findings_across_texts(written, texts, first)
                        if written.anywhere is None
                        else _findings_by_text(written, texts)
                    )
                except SearchBudgetExceeded:
                    aborted_sources[written.pattern.id] = None
        yield None
        if aborted_sources:
            raise SearchAborted(tuple(aborted_sources))

    def in_stream(
        self, view: View, start: int, resume: dict[int, int], base: int, known: int, *, whole: bool
    ) -> tuple[list[Finding], int]:
        """Return the findings from character `start` of the view on, and the final position: text after `known` cannot
        change the findings before this position.

        `view` begins at position `base` of a stream's text. `start`, `known` and the final position are characters of
        the view. `whole` means that no text follows. `resume` maps each shape to the byte of the view where its search
        continues. This method updates `resume`."""
        first, end = view.byte(start), view.byte(known)
        data = view.data[:end]
        settled = known
        findings: list[Finding] = []
        for group in self._groups:
            if group.search(ANYWHERE, data, first, end)[0][0] == end:
                # No shape of the group has a match or the beginning of one.
                continue
            for number in group.numbers:
                written = self._written[number]
                walk = StreamWalk(written.searches, view, end, whole=whole)
                place = max(first, resume.get(number, 0))
                while (spans := walk.next(place)) is not None:
                    begin, place = spans[0]
                    if (
                        written.shape.context is not None
                        and not whole
                        and view.character(place) + _CONTEXT_LOOKAHEAD > known
                    ):
                        walk.undecided_from = begin
                        break
                    resume[number] = place
                    begin, stop = spans[written.shape.group]
                    if begin < stop:
                        findings.append(_finding_in_view(written, view, begin, stop, base))
                settled = min(settled, view.character(walk.undecided_from))
        return findings, settled

    def begins(self, view: View, start: int, known: int) -> int:
        """Return the first character from `start` on at which a match may begin, or `known` if there is none. The text
        may continue after `known`."""
        first, end = view.byte(start), view.byte(known)
        data = view.data[:end]
        return view.character(
            min((group.search(ANYWHERE, data, first, end)[0][0] for group in self._groups), default=end)
        )


def _first_candidate(search: Search, data: bytes, place: int) -> Generator[None, None, int]:
    """Return the first byte from `place` on at which a match may begin. `search` must be compiled from a regex of
    `re2_syntax.unfinished`, so that it also finds the beginning of a match at the end of a window. The generator yields
    after each window."""
    size = _MIN_WINDOW_BYTES
    while place < len(data):
        stop = next_character(data, place + size, len(data))
        begin = search(ANYWHERE, memoryview(data)[:stop], place, stop)[0][0]
        if begin < stop:
            return begin
        place = stop
        size = min(2 * size, _MAX_WINDOW_BYTES)
        yield
    return place


def _findings_across_texts(written: WrittenShape, texts: Texts, first: int) -> Iterator[Finding | None]:
    """Yield the findings of a shape in all texts from byte `first` on. The texts are searched as one. Yield None after
    a step without a match."""
    for spans in matches(written.searches, texts.data, first, WalkBudget(len(texts.data))):
        yield None if spans is None else texts.finding(written, spans)


def _findings_by_text(written: WrittenShape, texts: Texts) -> Iterator[Finding | None]:
    """Yield the findings of a regex that is anchored to the beginning or end of the text. Each text in which the regex
    may match is searched on its own. Yield None after a step without a match."""
    assert written.anywhere is not None
    data, budget = texts.data, WalkBudget(len(texts.data))
    place = 0
    while (place := (yield from _first_candidate(written.anywhere, data, place))) < len(data):
        first, last = texts.ends(texts.number(place))
        for spans in matches(written.searches, memoryview(data)[first:last], 0, budget):
            yield None if spans is None else texts.finding(written, spans, first)
        place = last + 1


def _finding_in_view(written: WrittenShape, view: View, start: int, stop: int, base: int) -> Finding:
    """Return the finding in the bytes from `start` to `stop` of a view. The view begins at position `base` of the
    text."""
    near = written.shape.context is not None and _in_context(written.shape, view, start, stop)
    first, end = view.origin(view.character(start), view.character(stop))
    return _new_finding(written, base + first, base + end, near=near)


def _new_finding(written: WrittenShape, start: int, stop: int, *, near: bool) -> Finding:
    score = matching.judge(written.shape, "", near=near)
    assert score is not None
    return Finding(start, stop, written.pattern.entity_type, score, written.pattern.id)


def _in_context(shape: CompiledShape, view: View, start: int, stop: int) -> bool:
    start, stop = view.character(start), view.character(stop)
    # Search only near the two ends of the match, because the match may be as long as the text. The search also needs
    # the characters next to a context word, which show whether it is a whole word: one character before the word, and
    # two after it, since a plural `s` may follow.
    first = max(0, start - CONTEXT_CHARACTERS_BEFORE - 1)
    before, after = view.text[first : start + 2], view.text[stop - 1 : stop + _CONTEXT_LOOKAHEAD]
    return matching.in_context(shape, before, start - first, len(before)) or matching.in_context(shape, after, 0, 1)


def _groups(written_shapes: Sequence[WrittenShape]) -> Iterator[WrittenGroup]:
    numbers: list[int] = []
    unfinished: list[str] = []
    size = 0
    for number, written in enumerate(written_shapes):
        # RE2 accepts each group name only once in a combined regex, so the groups are removed.
        tokens = re2_syntax.without_text_ends(re2_syntax.without_groups(re2_syntax.tokens(written.shape.regex.pattern)))
        regex = re2_syntax.unfinished(tokens)
        length = written.searches.instructions
        if numbers and size + length > _MAX_GROUP_INSTRUCTIONS:
            yield WrittenGroup(numbers, _search_of("|".join(unfinished)))
            numbers, unfinished, size = [], [], 0
        numbers.append(number)
        unfinished.append(f"(?:{regex})")
        size += length
    if numbers:
        yield WrittenGroup(numbers, _search_of("|".join(unfinished)))


def _compiled(pattern: Pattern, shape: Shape) -> WrittenShape:
    tokens = re2_syntax.tokens(shape.regex)
    unfinished = re2.compile(re2_syntax.unfinished(tokens), matching.options())
    character = re2_syntax.any_character(tokens)
    anywhere = re2_syntax.unfinished(re2_syntax.without_text_ends(tokens)) if re2_syntax.has_text_ends(tokens) else None
    compiled = matching.compile_shape(shape, matching.compile_context(pattern.context))
    return WrittenShape(
        pattern,
        compiled,
        Searches(
            search_of(compiled.regex),
            search_of(unfinished),
            unfinished.programsize,
            None if character is None else _search_of(character),
        ),
        None if anywhere is None else _search_of(anywhere),
    )


def _search_of(regex: str) -> Search:
    return search_of(re2.compile(regex, matching.options()))
