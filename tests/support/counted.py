"""Counts operations, so that tests of cost need no clock: function calls, by the interpreter's profiler, and the
characters that are copied or searched."""

import cProfile
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, SupportsIndex

import pytest

from gatehouse.detection import pattern_set
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

#: Maximum ratio of the calls for a text to those for half of it. More than 2, because the edges of slices add calls.
MAX_GROWTH: Final = 2.2
_MAX_ADDED_FACTOR: Final = 2.7
#: Calls that do not depend on the size of the text.
_FEW: Final = 4_000
#: Characters that do not depend on the size of the text: the longest match and its context are searched several times.
_FEW_CHARACTERS: Final = 100_000


class Operations(NamedTuple):
    calls: int
    characters: int


def are_linear(quarter: Operations, half: Operations, whole: Operations, *, most: float = MAX_GROWTH) -> bool:
    """Return whether the operations for a quarter of a text, half of it and all of it grow linearly."""
    added, added_to_half = whole.characters - half.characters, half.characters - quarter.characters
    return (
        whole.calls <= most * half.calls + _FEW and added <= _MAX_ADDED_FACTOR * max(added_to_half, 0) + _FEW_CHARACTERS
    )


class Counter:
    """Counts operations. `matcher` has the built-in patterns. `slice_size` is the size of the slices of a text; None:
    the size in requests."""

    def __init__(self, patch: pytest.MonkeyPatch, *, slice_size: int | None = 1024) -> None:
        self.characters = 0
        self._profile = cProfile.Profile(subcalls=False)
        self._counts = False
        #: counted calls of work that was not repeated
        self._added = 0
        #: characters that were searched for context words of a single pattern
        self.in_contexts = 0
        for module in (pattern_set, candidates, context_words, openings, growth, ciphers):
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
        # The clock decides the length of slices. With short slices, a short text has many, which shows costs per slice.
        patch.setattr(texts, "thread_time", lambda: 0.0)
        if slice_size is not None:
            patch.setattr(texts, "MAX_SLICE_CHARACTERS", slice_size)
            patch.setattr(texts, "_MIN_SLICE_CHARACTERS", slice_size // 4)
        patch.setattr(turns.FairScheduler, "run", _at_once)

    def of(self, work: Callable[[], object]) -> Operations:
        """Return the operations of `work`."""
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
        """Return the operations so far."""
        with self.uncounted():
            calls = self._added + sum(entry.callcount for entry in self._profile.getstats())
        return Operations(calls, self.characters)

    def add(self, operations: Operations) -> None:
        """Add the operations of work that is not repeated."""
        self._added += operations.calls
        self.characters += operations.characters

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Do not count the calls in this context."""
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
            # The search does not read the text after a match.
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
    """Counts in `copied` the characters that are copied from it, and from these copies."""

    __slots__ = ("copied",)
    copied: list[int]

    def __new__(cls, text: str, copied: list[int] | None = None) -> "CountedText":
        counted_text = super().__new__(cls, text)
        counted_text.copied = [0] if copied is None else copied
        return counted_text

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self.copied[0] += len(part)
        return CountedText(part, self.copied)

    def __format__(self, spec: str) -> str:
        self.copied[0] += len(self)
        return super().__format__(spec)
