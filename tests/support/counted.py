"""Operations counted, so that tests of cost need no clock: calls, as the interpreter's own profiler counts them, and
characters that pass through what copies or searches them."""

import cProfile
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, SupportsIndex

import pytest

from gatehouse.detection import rules
from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.normalise import characters, decoded, escapes, hidden, joined, spaced, view, written
from gatehouse.detection.scanning import ciphers, texts
from gatehouse.detection.search import (
    candidates,
    context_words,
    growth,
    matching,
    openings,
)
from gatehouse.engine.dlp import turns
from gatehouse.engine.dlp.json_texts import grammar, replacement
from gatehouse.engine.dlp.steps import Steps, finish

#: How often more twice the text may take: of twice the size, and of what the second half adds. Edges of slices count.
MAX_GROWTH: Final = 2.2
_MOST_ADDED: Final = 2.7
#: Calls and characters beside those that depend on the text.
_FEW: Final = 4_000
#: The same of characters: the longest match and what is around it is searched a few times.
_FEW_CHARACTERS: Final = 100_000


class Operations(NamedTuple):
    calls: int
    characters: int


def are_linear(quarter: Operations, half: Operations, whole: Operations, *, most: float = MAX_GROWTH) -> bool:
    """Of a quarter of a text, half of it, and all."""
    added, added_to_half = whole.characters - half.characters, half.characters - quarter.characters
    return whole.calls <= most * half.calls + _FEW and added <= _MOST_ADDED * max(added_to_half, 0) + _FEW_CHARACTERS


class Counter:
    """`matcher` has the built-in patterns, and counts what is searched. `slice_size`: that of the slices of a text;
    None as it is in a request."""

    def __init__(self, patch: pytest.MonkeyPatch, *, slice_size: int | None = 1024) -> None:
        self.characters = 0
        self._profile = cProfile.Profile(subcalls=False)
        self._counts = False
        #: calls of work that was not done again
        self._added = 0
        #: characters in which context words were looked for one by one
        self.in_contexts = 0
        for module in (rules, candidates, context_words, openings, growth, ciphers):
            patch.setattr(module, "search_of", self._counted_search(module.search_of))
        ciphers._cached_searches.cache_clear()
        for module in (characters, ciphers, decoded, escapes, hidden, grammar, spaced, written):
            for name, value in list(vars(module).items()):
                if isinstance(value, re.Pattern):
                    patch.setattr(module, name, _CountedPattern(value, self))
        for module, name in (
            (decoded, "_ANY_PLACE"),
            (decoded, "_SEGMENT"),
            (decoded, "_SHIFTED"),
            (decoded, "_ENCODED"),
            (decoded, "_SHIFTED_OR_QUOTED"),
            (decoded, "_WRAPPED"),
            (decoded, "_QUOTED_PRINTABLE"),
            (spaced, "_next_row"),
            (joined, "_next_break"),
        ):
            patch.setattr(module, name, self._counting_search(getattr(module, name)))
        self.matcher = Matcher(BUILT_IN)
        patch.setattr(view.View, "__init__", self._counting(view.View.__init__, 1))
        patch.setattr(replacement.JsonCursor, "move", self._counting(replacement.JsonCursor.move, 1))
        patch.setattr(replacement, "is_json", self._counting(replacement.is_json, 0))
        patch.setattr(matching, "in_context", self._counted_context(matching.in_context))
        # How long a slice is depends on the clock. Short ones show in a short text what depends on their number.
        patch.setattr(texts, "thread_time", lambda: 0.0)
        if slice_size is not None:
            patch.setattr(texts, "SLICE", slice_size)
            patch.setattr(texts, "_MIN_SLICE_CHARACTERS", slice_size // 4)
        patch.setattr(turns.FairScheduler, "run", _at_once)

    def of(self, work: Callable[[], object]) -> Operations:
        """What the work takes."""
        self.characters = self._added = 0
        self._profile.clear()
        self._counts = True
        self._profile.enable()
        try:
            work()
        finally:
            self._profile.disable()
            self._counts = False
        return self.so_far()

    def so_far(self) -> Operations:
        """What work has taken until now."""
        with self.uncounted():
            calls = self._added + sum(entry.callcount for entry in self._profile.getstats())
        return Operations(calls, self.characters)

    def add(self, operations: Operations) -> None:
        """Counts what work took that is not done again."""
        self._added += operations.calls
        self.characters += operations.characters

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Calls within it do not count."""
        if self._counts:
            self._profile.disable()
        try:
            yield
        finally:
            if self._counts:
                self._profile.enable()

    def _counting(self, function: Callable[..., Any], place: int) -> Callable[..., Any]:
        def counting(*arguments: Any, **more: Any) -> Any:
            self.characters += len(arguments[place])
            return function(*arguments, **more)

        return counting

    def _counted_context(self, in_context: Callable[..., bool]) -> Callable[..., bool]:
        def counting(compiled: Any, text: str, start: int, end: int) -> bool:
            self.in_contexts += len(text)
            return in_context(compiled, text, start, end)

        return counting

    def _counted_search(self, search_of: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda compiled: self._counting_search(search_of(compiled))

    def _counting_search(self, search: Any) -> Any:
        def counting(anchor: Any, data: Any, start: int, end: int) -> Any:
            spans = search(anchor, data, start, end)
            # What follows a match is not read.
            self.characters += (spans[0][1] if spans[0][1] >= 0 else end) - start
            return spans

        return counting


class _CountedPattern:
    """A regex of the standard library whose searches are counted."""

    def __init__(self, pattern: re.Pattern[Any], counter: Counter) -> None:
        self._pattern = pattern
        self._counter = counter

    def search(self, text: Any, *span: int) -> re.Match[Any] | None:
        return self._counted(self._pattern.search(text, *span), text, *span)

    def match(self, text: Any, *span: int) -> re.Match[Any] | None:
        return self._counted(self._pattern.match(text, *span), text, *span)

    def fullmatch(self, text: Any, *span: int) -> re.Match[Any] | None:
        return self._counted(self._pattern.fullmatch(text, *span), text, *span)

    def finditer(self, text: Any, *span: int) -> Iterator[re.Match[Any]]:
        self._counted(None, text, *span)
        return self._pattern.finditer(text, *span)

    def split(self, text: Any, maxsplit: int = 0) -> list[Any]:
        self._counted(None, text)
        return self._pattern.split(text, maxsplit)

    def _counted(
        self, match: re.Match[Any] | None, text: Any, start: int = 0, end: int | None = None
    ) -> re.Match[Any] | None:
        stop = len(text) if end is None else min(end, len(text))
        self._counter.characters += (stop if match is None else match.end()) - min(start, stop)
        return match


async def _at_once(_: Any, owner: object, steps: Steps[Any], budget: object = None, *, size: int = 0) -> Any:
    return finish(steps)


class CountedText(str):
    """Counts the characters that are copied out of it, and out of what is, in `copied`."""

    __slots__ = ("copied",)
    copied: list[int]

    def __new__(cls, text: str, copied: list[int] | None = None) -> "CountedText":
        made = super().__new__(cls, text)
        made.copied = [0] if copied is None else copied
        return made

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self.copied[0] += len(part)
        return CountedText(part, self.copied)

    def __format__(self, spec: str) -> str:
        self.copied[0] += len(self)
        return super().__format__(spec)
