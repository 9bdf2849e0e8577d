"""A whole text: in one go, or in slices between which an event loop may do something else."""

from collections.abc import Iterable, Iterator, Sequence
from time import thread_time
from typing import Final

from gatehouse.detection.candidates import NEAR
from gatehouse.detection.findings import Finding
from gatehouse.detection.normalise import decoded as decoding
from gatehouse.detection.normalise import seen
from gatehouse.detection.rules import Rules
from gatehouse.detection.windows import Found, Scanner, by_place, keep, regions

#: Code points a slice, at most and at least.
SLICE: Final = 8192
_SHORTEST: Final = SLICE // 2
#: Seconds that a slice should take: with more the next one is half as long.
_LONG: Final = 0.004
#: What is seen before and behind something encoded: what a match and its context words may take, and what a match of
#: the longest shapes may.
_BEFORE: Final = 512
_BEHIND: Final = 512
_FAR_BEHIND: Final = 3072
#: How far behind a decoded slice that what a match beginning in it holds may be encoded: each character by some.
_NEAR: Final = 6 * NEAR


def scan(
    rules: Sequence[Rules], text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
) -> list[Finding]:
    """All that is found in `text`, by where it begins: not before `pos`, but what stands before it counts for word
    boundaries and context words. `decoded`: in decoded views too. `json_escapes`: `text` is JSON as written."""
    found: list[Finding] = []
    for part in scan_in_slices(rules, text, pos=pos, decoded=decoded, json_escapes=json_escapes):
        found += part
    found.sort(key=by_place)
    return found


def scan_in_slices(
    rules: Sequence[Rules], text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
) -> Iterator[list[Finding]]:
    """The same, each slice's findings for themselves. A slice takes some milliseconds at most: what texts are found to
    take decides how long it is, and changes nothing that is found."""
    scanner = Scanner(rules, json_escapes=json_escapes, start=pos)
    if len(text) <= _SHORTEST:
        # One slice, as most texts are.
        if text:
            scanner.push(text)
            yield scanner.advance(final=True)[0]
            if decoded:
                yield _decoded(rules, text, 0, pos, len(text), json_escapes=json_escapes)
        return
    slices = _Slices(len(text))
    for start, stop in slices:
        scanner.push(text[start:stop])
        found, _ = scanner.advance(final=stop == len(text))
        slices.done()
        yield found
    if not decoded:
        return
    first = run = 0
    slices = _Slices(len(text))
    for start, stop in slices:
        first, run = _aligned(text, start, first, run)
        found = _decoded(rules, text, first, max(start, pos), stop, json_escapes=json_escapes)
        slices.done()
        yield found


class _Slices:
    """From where to where each slice of a text of `length` code points goes. `done`: the work on one is."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._size = _SHORTEST
        self._began = 0.0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        start = 0
        while start < self._length:
            stop = min(start + self._size, self._length)
            self._began = thread_time()
            yield start, stop
            start = stop

    def done(self) -> None:
        took = thread_time() - self._began
        if took > _LONG:
            self._size = max(self._size // 2, _SHORTEST)
        elif took < _LONG / 4:
            self._size = min(self._size * 2, SLICE)


def _aligned(text: str, start: int, before: int, run: int) -> tuple[int, int]:
    """Where the slice from `start` on is seen from, and where the segment that may go through that place began: a
    segment is cut between its groups of four."""
    first = max(0, start - _BEFORE)
    bare = len(text[before:first].rstrip(decoding.ALPHABET))
    run = before + bare if bare or not before else run
    return first - (first - run) % 4 if first > run else first, run


def _decoded(
    rules: Sequence[Rules], text: str, first: int, start: int, stop: int, *, json_escapes: bool
) -> list[Finding]:
    """What begins between `start` and `stop` and is encoded at least in part."""
    candidates = decoding.candidates(text[first : stop + _NEAR])
    if not candidates:
        return []
    found: Found = {}
    for begin, end in _passages(candidates, first):
        if begin >= stop:
            break
        view = decoding.decoded_view(seen(text[begin : end + _BEHIND], json_escapes=json_escapes))
        if view is not None and any(each.openings.opened(view) for each in rules):
            view = decoding.decoded_view(seen(text[begin : end + _FAR_BEHIND], json_escapes=json_escapes))
        if view is None:
            continue
        seams = decoding.encoded(view)
        for each in rules:
            over = regions(seams, 0, view.at(stop - begin), len(view))
            keep(found, each.findings(view, over, {}, begin))
    return [finding for finding in found.values() if start <= finding.start < stop]


def _passages(candidates: Iterable[tuple[int, int]], first: int) -> Iterator[tuple[int, int]]:
    """From where to where a text is decoded for `candidates`, which count from `first`: those near each other together,
    and what stands before them."""
    begin = end = -1
    for start, stop in candidates:
        if begin >= 0 and start - _BEFORE > end + _BEHIND:
            yield first + begin, first + end
            begin = -1
        if begin < 0:
            begin = max(0, start - _BEFORE)
        end = max(end, stop)
    if begin >= 0:
        yield first + begin, first + end
