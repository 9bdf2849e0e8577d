"""What an organization's own patterns match in a text as it is written: what RE2 finds, of any length."""

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection import matching, re2_syntax
from gatehouse.detection.findings import Finding
from gatehouse.detection.matching import CompiledShape
from gatehouse.detection.normalise import View
from gatehouse.detection.pattern import CONTEXT_AFTER, CONTEXT_BEFORE, Pattern, Shape
from gatehouse.detection.searching import ANYWHERE, Search, Spans, search_of
from gatehouse.detection.walks import Budget, Searches, Spent, StreamWalk, matches, next_character

#: No part of a regex matches this byte, which UTF-8 does not have: nothing is found over it.
_BETWEEN: Final = b"\xff"
#: What decides about a match behind its end, in characters, where its pattern has context words.
_AHEAD: Final = CONTEXT_AFTER + 2
#: RE2's instructions for the rules that are searched for together in a stream.
_LARGEST_GROUP: Final = 2_000
#: Bytes of the first and the largest window in which they are.
_WINDOW: Final = 64
_LARGEST_WINDOW: Final = 64 << 10
#: Findings at a time.
_MANY: Final = 1000


class SearchGivenUp(Exception):
    """The search for some patterns, named by their ids, would take more than there is for a text."""

    def __init__(self, sources: Sequence[str]) -> None:
        super().__init__("the search for the pattern takes too long in this text")
        self.sources = tuple(sources)


class Rule(NamedTuple):
    """One shape of a pattern. `anywhere` is the search for the regex without its ends of the text, None where it has
    none, in a text that may go on."""

    pattern: Pattern
    shape: CompiledShape
    searches: Searches
    anywhere: Search | None


class Group(NamedTuple):
    """Some of the rules, and the search for any of them in a text that may go on and stands among others."""

    numbers: list[int]
    search: Search


#: Where a text begins and ends in its source.
Part: TypeAlias = tuple[int, int]


class Texts:
    """Views of one or more texts of a source, searched as one. Nothing is found over the gap between two of them, but
    where it is one character, which is a line break."""

    def __init__(self, views: Sequence[View], parts: Sequence[Part]) -> None:
        self._views = views
        self._parts = parts
        gaps = [b"\n" if after[0] - part[1] == 1 else _BETWEEN for part, after in pairwise(parts)]
        pieces = chain.from_iterable((view.data, gap) for view, gap in zip(views, [*gaps, b""], strict=True))
        self.data = b"".join(pieces) if gaps else views[0].data
        self._starts = [0, *accumulate(len(view.data) + 1 for view in views)]

    def number(self, byte: int) -> int:
        """Which text holds a byte."""
        return bisect_right(self._starts, byte) - 1

    def ends(self, number: int) -> tuple[int, int]:
        """The bytes of a text."""
        return self._starts[number], self._starts[number + 1] - 1

    def finding(self, rule: Rule, spans: Spans, offset: int = 0) -> Finding | None:
        """`spans` are bytes from `offset` on."""
        start, stop = spans[rule.shape.group]
        if start >= stop:
            return None
        start, stop = start + offset, stop + offset
        number = self.number(start)
        first, last = self.ends(number)
        if stop <= last:
            return _finding(rule, self._views[number], start - first, stop - first, self._parts[number][0])
        begin = self._place(start)
        near = rule.shape.context is not None and _in_context(
            rule.shape, self._views[number], start - first, last - first
        )
        return _found(rule, begin, self._place(stop), near=near)

    def _place(self, byte: int) -> int:
        """The same place in the source."""
        number = self.number(byte)
        view, (begin, end) = self._views[number], self._parts[number]
        return begin + view.start_of(view.character(byte - self._starts[number]), end - begin)


class AsWritten:
    """Compiled once, when patterns are loaded; may be used by many threads."""

    def __init__(self, shapes: Sequence[tuple[Pattern, Shape]]) -> None:
        self._rules = [_compiled(pattern, shape) for pattern, shape in shapes]
        self._groups = list(_groups(self._rules))

    def in_texts(self, texts: Texts) -> Iterator[list[Finding]]:
        """What is found in whole texts, in steps of some milliseconds. Raises `SearchGivenUp` behind all findings."""
        found: list[Finding] = []
        for finding in self._in_texts(texts):
            if finding is not None:
                found.append(finding)
            if finding is None or len(found) >= _MANY:
                yield found
                found = []

    def _in_texts(self, texts: Texts) -> Iterator[Finding | None]:
        """Findings, and None where the search goes on, and at the end."""
        given_up: dict[str, None] = {}
        for group in self._groups:
            first = yield from _first(group.search, texts.data, 0)
            for number in group.numbers if first < len(texts.data) else ():
                rule = self._rules[number]
                try:
                    yield from _in_all(rule, texts, first) if rule.anywhere is None else _in_each_text(rule, texts)
                except Spent:
                    given_up[rule.pattern.id] = None
        yield None
        if given_up:
            raise SearchGivenUp(tuple(given_up))

    def in_stream(
        self, view: View, start: int, behind: dict[int, int], base: int, known: int, *, whole: bool
    ) -> tuple[list[Finding], int]:
        """What is found from character `start` of a stream's text on, and up to which character nothing else is,
        however the text goes on behind `known`; `whole`: it does not. The view is of what begins at `base`. `behind`
        says where each rule goes on, in bytes of the view, and is kept."""
        first, end = view.byte(start), view.byte(known)
        data = view.data[:end]
        settled = known
        found: list[Finding] = []
        for group in self._groups:
            if group.search(ANYWHERE, data, first, end)[0][0] == end:
                # There is no match of theirs, nor the beginning of one.
                continue
            for number in group.numbers:
                rule = self._rules[number]
                walk = StreamWalk(rule.searches, view, end, whole=whole)
                place = max(first, behind.get(number, 0))
                while (spans := walk.next(place)) is not None:
                    begin, place = spans[0]
                    if rule.shape.context is not None and not whole and view.character(place) + _AHEAD > known:
                        walk.alive = begin
                        break
                    behind[number] = place
                    begin, stop = spans[rule.shape.group]
                    if begin < stop:
                        found.append(_finding(rule, view, begin, stop, base))
                settled = min(settled, view.character(walk.alive))
        return found, settled

    def begins(self, view: View, start: int, known: int) -> int:
        """The first character from `start` on at which a match may begin in a text that goes on behind `known`, or
        that."""
        first, end = view.byte(start), view.byte(known)
        data = view.data[:end]
        return view.character(
            min((group.search(ANYWHERE, data, first, end)[0][0] for group in self._groups), default=end)
        )


def _first(search: Search, data: bytes, place: int) -> Generator[None, None, int]:
    """Before which byte, from `place` on, none of the regexes of a search in a text that may go on matches."""
    size = _WINDOW
    while place < len(data):
        stop = next_character(data, place + size, len(data))
        begin = search(ANYWHERE, memoryview(data)[:stop], place, stop)[0][0]
        if begin < stop:
            return begin
        place = stop
        size = min(2 * size, _LARGEST_WINDOW)
        yield
    return place


def _in_all(rule: Rule, texts: Texts, first: int) -> Iterator[Finding | None]:
    """A rule's findings in all texts as one, from a byte on; None where it goes on without one."""
    for spans in matches(rule.searches, texts.data, first, Budget(len(texts.data))):
        yield None if spans is None else texts.finding(rule, spans)


def _in_each_text(rule: Rule, texts: Texts) -> Iterator[Finding | None]:
    """The same of a regex with ends of the text: each text is searched by itself, where it may match in it at all."""
    assert rule.anywhere is not None
    data, budget = texts.data, Budget(len(texts.data))
    place = 0
    while (place := (yield from _first(rule.anywhere, data, place))) < len(data):
        first, last = texts.ends(texts.number(place))
        for spans in matches(rule.searches, memoryview(data)[first:last], 0, budget):
            yield None if spans is None else texts.finding(rule, spans, first)
        place = last + 1


def _finding(rule: Rule, view: View, start: int, stop: int, base: int) -> Finding:
    """What stands in these bytes of a view of what begins at `base`."""
    near = rule.shape.context is not None and _in_context(rule.shape, view, start, stop)
    first, behind = view.origin(view.character(start), view.character(stop))
    return _found(rule, base + first, base + behind, near=near)


def _found(rule: Rule, start: int, stop: int, *, near: bool) -> Finding:
    score = matching.judge(rule.shape, "", near=near)
    assert score is not None
    return Finding(start, stop, rule.pattern.entity_type, score, rule.pattern.id)


def _in_context(shape: CompiledShape, view: View, start: int, stop: int) -> bool:
    start, stop = view.character(start), view.character(stop)
    # Only what stands beside the match, which may be as long as the text. The characters next to a word show whether it
    # stands by itself: one before it, and behind it a plural's `s` and one more.
    first = max(0, start - CONTEXT_BEFORE - 1)
    before, behind = view.text[first : start + 2], view.text[stop - 1 : stop + _AHEAD]
    return matching.in_context(shape, before, start - first, len(before)) or matching.in_context(shape, behind, 0, 1)


def _groups(rules: Sequence[Rule]) -> Iterator[Group]:
    numbers: list[int] = []
    unfinished: list[str] = []
    size = 0
    for number, rule in enumerate(rules):
        # Groups of a name may stand in one of them only.
        read = re2_syntax.without_text_ends(re2_syntax.without_groups(re2_syntax.tokens(rule.shape.regex.pattern)))
        written = re2_syntax.unfinished(read)
        length = rule.searches.instructions
        if numbers and size + length > _LARGEST_GROUP:
            yield Group(numbers, _search_of("|".join(unfinished)))
            numbers, unfinished, size = [], [], 0
        numbers.append(number)
        unfinished.append(f"(?:{written})")
        size += length
    if numbers:
        yield Group(numbers, _search_of("|".join(unfinished)))


def _compiled(pattern: Pattern, shape: Shape) -> Rule:
    read = re2_syntax.tokens(shape.regex)
    unfinished = re2.compile(re2_syntax.unfinished(read), matching.options())
    character = re2_syntax.any_character(read)
    anywhere = re2_syntax.unfinished(re2_syntax.without_text_ends(read)) if re2_syntax.has_text_ends(read) else None
    compiled = matching.compile_shape(shape, matching.compile_context(pattern.context))
    return Rule(
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
