"""A whole text: in one go, or in slices between which an event loop may do something else."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gatehouse.detection.findings import Finding
from gatehouse.detection.normalise import decoded as decoding
from gatehouse.detection.normalise import seen
from gatehouse.detection.rules import Rules
from gatehouse.detection.windows import Scanner, by_place, keep, regions

#: Code points a slice.
SLICE: Final = 8192
#: What a decoded slice is seen with, before and behind: what a match and its context words may take.
_BEFORE: Final = 512
_BEHIND: Final = 6 * 512


def scan(
    rules: Sequence[Rules], text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
) -> list[Finding]:
    """All that is found in `text`, by where it begins: not before `pos`, but what stands before it counts for word
    boundaries and context words. `decoded`: in decoded views too. `json_escapes`: `text` is JSON as written."""
    found: list[Finding] = []
    for part in scan_in_slices(rules, text, pos=pos, decoded=decoded, json_escapes=json_escapes):
        found += part
    if len(text) > SLICE or decoded:
        found.sort(key=by_place)
    return found


def scan_in_slices(
    rules: Sequence[Rules], text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
) -> Iterator[list[Finding]]:
    """The same, each slice's findings for themselves. A slice takes some milliseconds at most."""
    scanner = Scanner(rules, json_escapes=json_escapes, start=pos)
    for start in range(0, len(text), SLICE):
        scanner.push(text[start : start + SLICE])
        found, _ = scanner.advance(final=start + SLICE >= len(text))
        yield found
    if not decoded:
        return
    first = run = 0
    for start in range(0, len(text), SLICE):
        first, run = _aligned(text, start, first, run)
        yield list(_decoded(rules, text, first, max(start, pos), start + SLICE, json_escapes=json_escapes))


def _aligned(text: str, start: int, before: int, run: int) -> tuple[int, int]:
    """Where the slice from `start` on is seen from, and where the segment that may go through that place began: a
    segment is cut between its groups of four."""
    first = max(0, start - _BEFORE)
    bare = len(text[before:first].rstrip(decoding.ALPHABET))
    run = before + bare if bare or not before else run
    return first - (first - run) % 4 if first > run else first, run


def _decoded(
    rules: Sequence[Rules], text: str, first: int, start: int, stop: int, *, json_escapes: bool
) -> Iterator[Finding]:
    """What begins between `start` and `stop` and is encoded at least in part."""
    found: dict[tuple[int, int, str], Finding] = {}
    for begin, end in _passages(decoding.candidates(text[first : stop + _BEHIND]), first):
        piece = text[begin:end]
        view = decoding.decoded_view(seen(piece, json_escapes=json_escapes))
        if view is None:
            continue
        seams = decoding.encoded(view)
        for each in rules:
            over = regions(seams, 0, len(view), len(view))
            keep(found, each.findings(view, over, {}, begin))
    return (finding for finding in found.values() if start <= finding.start < stop)


def _passages(candidates: Iterable[tuple[int, int]], first: int) -> Iterator[tuple[int, int]]:
    """What is seen of a text from `first` on to decode `candidates`, which count from there: those near each other
    together."""
    begin = end = -1
    for start, stop in candidates:
        if begin >= 0 and start - _BEFORE > end:
            yield first + begin, first + end
            begin = -1
        if begin < 0:
            begin = max(0, start - _BEFORE)
        end = max(end, stop + _BEHIND)
    if begin >= 0:
        yield first + begin, first + end
