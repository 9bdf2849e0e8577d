"""Counts the operations for long, repetitive texts without running them all: a pure function runs once for equal input,
and its operations are counted at each call.

So a scan of 10 MiB is counted exactly, in the time for some slices. Only functions whose input is a slice and its
surroundings are cached. Functions over the whole text run in full.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, SupportsIndex

import pytest
from tests.support.counted import Counter, Operations
from tests.support.hostile import of_prose

from gatehouse.detection.findings import Finding
from gatehouse.detection.normalise import View, decoded, escapes
from gatehouse.detection.pattern_set import PatternSet, Region
from gatehouse.detection.scanning import ciphers, texts
from gatehouse.detection.scanning.windows import Scanner
from gatehouse.detection.search.openings import Openings

#: Code points of a block. A slice is a multiple of it.
BLOCK: Final = 2048
_PROSE: Final = of_prose(BLOCK)

Key = tuple[Any, ...]


def of_blocks(make: Callable[[int], str], *, blocks_of_prose: int = 0) -> Callable[[int], str]:
    """Return a function that makes texts, which repeat the first block of `make` and some blocks of prose."""

    def text(size: int) -> str:
        period = make(8 * BLOCK)[:BLOCK] + _PROSE * blocks_of_prose
        return period * max(1, size // len(period.encode(errors="replace")))

    return text


class LongText(str):
    """Counts the characters that are copied from it."""

    __slots__ = ("copied",)

    def __new__(cls, text: str) -> "LongText":
        long_text = super().__new__(cls, text)
        long_text.copied = 0
        return long_text

    copied: int

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self.copied += len(part)
        return part


class RepeatedWork(Counter):
    """A `Counter` with the slices of requests, which runs repeated work only once."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__(patch, slice_size=None)
        self._known: dict[Key, tuple[Any, Operations]] = {}
        #: how often work was run, and how often it was only counted
        self.done = self.repeated = 0
        self.remembers = True
        for holder, name, key in (
            (Scanner, "_views", _of_tail),
            (PatternSet, "grows_from", _of_view),
            (Openings, "settled", _of_view),
            (texts, "_decoded_views", _as_is),
            (decoded, "candidates", _as_is),
            (decoded, "reads_as_text", _as_is),
            (escapes, "nested_view", _of_view_alone),
            (ciphers, "seen", _as_is),
            (ciphers, "_in_rot13", _of_places),
            (ciphers, "_backwards", _of_places),
            (ciphers, "_tokens_backwards", _of_places),
        ):
            patch.setattr(holder, name, self._remembered(name, getattr(holder, name), key))
        patch.setattr(PatternSet, "findings_and_waiting", self._remembered_findings(PatternSet.findings_and_waiting))

    def forget(self) -> None:
        self._known.clear()

    def _remembered(self, name: str, function: Callable[..., Any], key: Callable[..., Key]) -> Callable[..., Any]:
        def remembered(*arguments: Any, **more: Any) -> Any:
            if not self.remembers:
                return function(*arguments, **more)
            with self.uncounted():
                known = (name, *key(*arguments, **more))
            return self._result(known, lambda: function(*arguments, **more))

        return remembered

    def _remembered_findings(self, search: Callable[..., Any]) -> Callable[..., Any]:
        def remembered(
            patterns: PatternSet, view: View, over: Iterable[Region], behind: dict[int, int], base: int
        ) -> Any:
            regions = list(over)
            if not self.remembers:
                return search(patterns, view, regions, behind, base)
            with self.uncounted():
                key = ("findings", id(patterns), *_content(view), _written(regions), tuple(sorted(behind.items())))

            def work() -> Any:
                after = dict(behind)
                result, waiting = search(patterns, view, regions, after, 0)
                return result, waiting, after

            result, waiting, after = self._result(key, work)
            with self.uncounted():
                behind.clear()
                behind.update(after)
                placed = [Finding(f.start + base, f.end + base, f.entity_type, f.score, f.source) for f in result]
            return placed, waiting

        return remembered

    def _result(self, key: Key, work: Callable[[], Any]) -> Any:
        known = self._known.get(key)
        if known is not None:
            self.repeated += 1
            self.add(known[1])
            return known[0]
        self.done += 1
        before = self.so_far() if self._counts else Operations(0, 0)
        result = work()
        after = self.so_far() if self._counts else Operations(0, 0)
        self._known[key] = result, Operations(after.calls - before.calls, after.characters - before.characters)
        return result


def _as_is(*arguments: Any, **more: Any) -> Key:
    return (*arguments, *more.items())


def _content(view: View) -> Key:
    return (
        view.text,
        None if view.starts is None else view.starts.tobytes(),
        None if view.ends is None else view.ends.tobytes(),
    )


def _of_tail(scanner: Any, *, final: bool) -> Key:
    return scanner._tail, scanner._json_escapes, final


def _of_view(owner: object, view: View, first: int, end: int) -> Key:
    return id(owner), *_content(view), first, end


def _of_view_alone(view: View, *, final: bool) -> Key:
    return *_content(view), final


def _of_places(text: str, places: Iterable[tuple[int, int]]) -> Key:
    return text, tuple(places)


def _written(regions: Iterable[Region]) -> Key:
    lists = {id(part): tuple(part) for region in regions for part in (region.seams, region.escapes) if part is not None}
    return tuple(
        region._replace(seams=lists.get(id(region.seams)), escapes=lists.get(id(region.escapes))) for region in regions
    )
