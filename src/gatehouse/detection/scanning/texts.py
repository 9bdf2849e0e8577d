"""A whole text: in one go, or in slices between which an event loop may do something else."""

from collections.abc import Iterable, Iterator, Sequence
from time import thread_time
from typing import Final, TypeAlias

from gatehouse.detection.findings import Finding, Found, Known, Place, by_place, keep
from gatehouse.detection.normalise import View, escapes, joined, seen
from gatehouse.detection.normalise import decoded as decoding
from gatehouse.detection.pattern import NEAR
from gatehouse.detection.regex.byte_search import ANYWHERE
from gatehouse.detection.rules import Region, Rules
from gatehouse.detection.scanning import ciphers
from gatehouse.detection.scanning.windows import Scanner, regions
from gatehouse.detection.search.as_written import Part, SearchAborted, Texts

#: Code points a slice, at most and at least.
SLICE: Final = 8192
_MIN_SLICE_CHARACTERS: Final = SLICE // 4
#: Seconds that a slice should take: with more the next one is half as long.
_SLOW_SLICE_SECONDS: Final = 0.002
#: What is seen before and behind something encoded: what a match and its context words may take, and what a match of
#: the longest shapes may.
_BEFORE: Final = 512
_BEHIND: Final = 512
_FAR_BEHIND: Final = 3072
#: Of a segment that goes through the beginning of a slice: how far back a place is looked for that one of its groups
#: begins at, and how many characters tell whether one does.
_ALIGNING: Final = 64
_HEAD: Final = 128
#: How far behind a decoded slice that what a match beginning in it holds may be encoded: each character by some.
_NEAR: Final = 6 * NEAR


def scan(
    rules: Sequence[Rules], text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
) -> list[Finding]:
    """All that is found in `text`, by where it begins: not before `pos`, but what stands before it counts for word
    boundaries and context words. `decoded`: in decoded views too. `json_escapes`: `text` is JSON as written."""
    findings: Found = {}
    for part in scan_in_slices(rules, text, pos=pos, decoded=decoded, json_escapes=json_escapes):
        keep(findings, part)
    return sorted(findings.values(), key=by_place)


def scan_short(rules: Sequence[Rules], text: str, *, decoded: bool = True) -> list[Finding] | None:
    """Return what is found in a text of at most a slice that reads in one way only, as most do; None for others."""
    if len(text) > SLICE or "\\" in text or (decoded and ciphers.is_read_whole(text)):
        return None
    view = seen(text, json_escapes=False)
    if view.starts is not None:
        return None
    data = view.data
    disguised = ciphers.place_searches(rules).disguised
    if disguised(ANYWHERE, data, 0, len(data))[0][0] >= 0 or joined.breaks(view):
        return None
    if view.text != text:
        # Some characters are read as others. An escape may begin with one of them, and places of values in other
        # writings are looked for in the text as it is.
        raw = text.encode("utf-8", "replace")
        if "\\" in view.text or disguised(ANYWHERE, raw, 0, len(raw))[0][0] >= 0:
            return None
    if decoded and decoding.shifts_or_quotes(data):
        return None
    region = (Region(0, len(text), len(text)),)
    findings: Found = {}
    for rule_set in rules:
        if rule_set.as_written is None:
            keep(findings, rule_set.findings(view, region, {}, 0))
    return sorted(findings.values(), key=by_place) if findings else []


def scan_in_slices(
    rules: Sequence[Rules],
    text: str,
    *,
    pos: int = 0,
    decoded: bool = True,
    json_escapes: bool = False,
    parts: Sequence[Part] | None = None,
    is_tried: bool = False,
) -> Iterator[list[Finding]]:
    """The same, each slice's findings for themselves. A slice takes some milliseconds at most: what texts are found to
    take decides how long it is, and changes nothing that is found. `parts`: the text is made of texts, and what an
    organization's own patterns find lies in one of them. `is_tried`: `scan_short` has returned None."""
    if len(text) > SLICE and (others := [rule_set for rule_set in rules if rule_set.as_written is None]):
        # What an organization's own patterns find needs the whole text at once, which may take longer than a slice:
        # those who give work a turn know by now that this text is long.
        yield from _in_slices(others, text, (), pos=pos, decoded=decoded, json_escapes=json_escapes)
        rules = [rule_set for rule_set in rules if rule_set.as_written is not None]
        if not rules:
            return
    own: list[Finding] = []
    given_up: SearchAborted | None = None
    try:
        for part in _as_written(rules, text, [(0, len(text))] if parts is None else parts, json_escapes=json_escapes):
            own += [finding for finding in part if finding.start >= pos] if pos else part
            yield part
    except SearchAborted as error:
        given_up = error
    if not is_tried and not pos and not json_escapes:
        short = scan_short(rules, text, decoded=decoded)
        if short is not None:
            yield _unknown(short, {by_place(finding): finding.score for finding in own})
            if given_up is not None:
                raise given_up
            return
    yield from _in_slices(rules, text, own, pos=pos, decoded=decoded, json_escapes=json_escapes)
    if given_up is not None:
        raise given_up


def _as_written(
    rules: Sequence[Rules], text: str, parts: Sequence[Part], *, json_escapes: bool
) -> Iterator[list[Finding]]:
    """What an organization's own patterns find in each part."""
    own = [rule_set.as_written for rule_set in rules if rule_set.as_written is not None]
    if not own or not parts:
        return
    views: list[View] = []
    for start, end in parts:
        views.append(seen(text[start:end], json_escapes=json_escapes))
        yield []
    texts = Texts(views, parts)
    given_up: list[str] = []
    for patterns in own:
        try:
            yield from patterns.in_texts(texts)
        except SearchAborted as error:
            given_up += error.sources
    if given_up:
        raise SearchAborted(given_up)


def _in_slices(
    rules: Sequence[Rules], text: str, own: Sequence[Finding], *, pos: int, decoded: bool, json_escapes: bool
) -> Iterator[list[Finding]]:
    known = {by_place(finding): finding.score for finding in own}
    scanner = Scanner(rules, json_escapes=json_escapes, start=pos, known=Known(own), releases_late=True)
    if len(text) <= _MIN_SLICE_CHARACTERS:
        # One slice, as most texts are.
        if text:
            scanner.push(text)
            findings, _ = scanner.advance(final=True)
            yield _unknown(findings, known)
            if decoded:
                again = _decoded(rules, text, 0, pos, len(text), json_escapes=json_escapes)
                _note(findings, known)
                yield _unknown(again, known)
                _note(again, known)
                yield ciphers.Ciphers(rules, text, known, json_escapes=json_escapes).find(pos, len(text))
        return
    slices = _Slices(len(text))
    for start, stop in slices:
        scanner.push(text[start:stop])
        findings = _unknown(scanner.advance(final=stop == len(text))[0], known)
        _note(findings, known)
        slices.done()
        yield findings
    if not decoded:
        return
    first = run = 0
    slices = _Slices(len(text))
    for start, stop in slices:
        first, run = _aligned(text, start, first, run)
        findings = _unknown(_decoded(rules, text, first, max(start, pos), stop, json_escapes=json_escapes), known)
        _note(findings, known)
        slices.done()
        yield findings
    turned = ciphers.Ciphers(rules, text, known, json_escapes=json_escapes)
    slices = _Slices(len(text))
    for start, stop in slices:
        findings = _unknown(turned.find(max(start, pos), stop), known)
        _note(findings, known)
        slices.done()
        yield findings


#: The scores of findings, by their places.
Scores: TypeAlias = dict[Place, float]


def _note(findings: Iterable[Finding], known: Scores) -> None:
    for finding in findings:
        known[by_place(finding)] = finding.score


def _unknown(findings: list[Finding], known: Scores) -> list[Finding]:
    """Those that were not found before, or with a lower score."""
    if not known:
        return findings
    return [finding for finding in findings if known.get(by_place(finding), -1.0) < finding.score]


class _Slices:
    """From where to where each slice of a text of `length` code points goes. `done`: the work on one is."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._size = _MIN_SLICE_CHARACTERS
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
        if took > _SLOW_SLICE_SECONDS:
            self._size = max(self._size // 2, _MIN_SLICE_CHARACTERS)
        elif took < _SLOW_SLICE_SECONDS / 2.2:
            self._size = min(self._size * 2, SLICE)


def _aligned(text: str, start: int, before: int, run: int) -> tuple[int, int]:
    """Where the slice from `start` on is seen from, and where the run of characters that may be encoded began, which
    goes through that place.

    A segment is cut between its groups of four. What stands before a segment may look like a part of it, and the first
    characters that it encodes may not be ASCII: a near place is taken from which on the segment reads as text."""
    first = max(0, start - _BEFORE)
    bare = len(text[before:first].rstrip(decoding.ALPHABET))
    run = before + bare if bare or not before else run
    if first <= run:
        return first, run
    # What repeats may read as text from two of four places: the run's own groups come first.
    places = sorted(range(first, max(run, first - _ALIGNING) - 1, -1), key=lambda place: (place - run) % 4 != 0)
    for place in places:
        if decoding.reads_as_text(text[place : place + _HEAD]):
            return place, run
    return places[0], run


def _decoded(
    rules: Sequence[Rules], text: str, first: int, start: int, stop: int, *, json_escapes: bool
) -> list[Finding]:
    """What begins between `start` and `stop` and is encoded at least in part."""
    candidates = decoding.candidates(text[first : stop + _NEAR])
    if not candidates:
        return []
    findings: Found = {}
    for begin, end in _passages(candidates, first):
        if begin >= stop:
            break
        views = _decoded_views(text[begin : end + _BEHIND], json_escapes=json_escapes)
        if any(rule_set.openings.may_begin(view) for rule_set in rules for view in views):
            views = _decoded_views(text[begin : end + _FAR_BEHIND], json_escapes=json_escapes)
        # What is encoded may be JSON.
        nested = [escapes.nested_view(view, final=True) for view in views]
        for view in (*views, *(derived.view for derived in nested if derived is not None)):
            seams = view.replaced()
            for rule_set in rules:
                over = regions(seams, 0, view.at(stop - begin), len(view))
                keep(findings, rule_set.findings(view, over, {}, begin))
    return [finding for finding in findings.values() if start <= finding.start < stop]


def _decoded_views(text: str, *, json_escapes: bool) -> list[View]:
    """What is encoded may stand in JSON: its escapes are seen through first."""
    return decoding.decoded_views(escapes.without_escapes(seen(text, json_escapes=json_escapes)))


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
