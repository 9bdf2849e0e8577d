"""Scans a complete text, either at once or in slices. Between two slices an event loop may do other work."""

from collections.abc import Iterable, Iterator, Sequence
from time import thread_time
from typing import Final, TypeAlias

from gatehouse.detection.findings import Finding, FindingsByPlace, KnownFindings, Place, by_place, keep_best
from gatehouse.detection.normalise import View, escapes, joined, seen
from gatehouse.detection.normalise import decoded as decoding
from gatehouse.detection.pattern import NEAR_CHARACTERS
from gatehouse.detection.pattern_set import PatternSet, Region
from gatehouse.detection.regex.byte_search import ANYWHERE
from gatehouse.detection.scanning import ciphers
from gatehouse.detection.scanning.regions import regions_around_seams
from gatehouse.detection.scanning.windows import Scanner
from gatehouse.detection.search.as_written import Part, SearchAborted, Texts

#: Maximum code points of a slice. `_MIN_SLICE_CHARACTERS` is the minimum.
MAX_SLICE_CHARACTERS: Final = 8192
_MIN_SLICE_CHARACTERS: Final = MAX_SLICE_CHARACTERS // 4
#: Intended maximum time of a slice. After a slower slice, the next one is half as long.
_SLOW_SLICE_SECONDS: Final = 0.002
#: Number of characters before and after a candidate that are decoded with it: enough for a match and its context words.
_BEFORE_CHARACTERS: Final = 512
_AFTER_CHARACTERS: Final = 512
#: Number of characters after a candidate that are decoded if a match of the longest shapes may begin there.
_AFTER_LONG_SHAPES_CHARACTERS: Final = 3072
#: Number of characters before the decoding position that are tried as the beginning of a group. The decoding position
#: is `_BEFORE_CHARACTERS` before the slice. `normalise.decoded` defines group and segment.
_MAX_ALIGNING_CHARACTERS: Final = 64
#: Number of characters that are decoded to decide whether a group begins at a position.
_PROBE_CHARACTERS: Final = 128
#: Number of characters after a slice that are also searched for candidates, because a match that begins in the slice
#: may extend into them. A decoded character may be encoded by six characters.
_LOOKAHEAD_CHARACTERS: Final = 6 * NEAR_CHARACTERS


def scan(
    pattern_sets: Sequence[PatternSet], text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
) -> list[Finding]:
    """Return all findings in `text`, in order.

    Findings begin at `pos` or later. The text before `pos` is used only for word boundaries and context words. If
    `decoded` is true, the decoded views are searched too. `json_escapes` means that `text` is raw JSON."""
    findings: FindingsByPlace = {}
    for part in scan_in_slices(pattern_sets, text, pos=pos, decoded=decoded, json_escapes=json_escapes):
        keep_best(findings, part)
    return sorted(findings.values(), key=by_place)


def scan_short(pattern_sets: Sequence[PatternSet], text: str, *, decoded: bool = True) -> list[Finding] | None:
    """Return the findings of a short text that has only one view. Most texts are like this. Return None if the text is
    longer than a slice or has other views. The set with an organization's own patterns is skipped: `scan_in_slices`
    searches for these patterns itself."""
    if len(text) > MAX_SLICE_CHARACTERS or "\\" in text or (decoded and ciphers.is_read_whole(text)):
        return None
    view = seen(text, json_escapes=False)
    if view.starts is not None:
        return None
    data = view.data
    disguised = ciphers.place_searches(pattern_sets).disguised
    if disguised(ANYWHERE, data, 0, len(data))[0][0] >= 0 or joined.breaks(view):
        return None
    if view.text != text:
        # Some characters were replaced. The replaced text may contain an escape, and the original text may contain
        # values in other encodings.
        raw = text.encode("utf-8", "replace")
        if "\\" in view.text or disguised(ANYWHERE, raw, 0, len(raw))[0][0] >= 0:
            return None
    if decoded and decoding.shifts_or_quotes(data):
        return None
    region = (Region(0, len(text), len(text)),)
    findings: FindingsByPlace = {}
    for patterns in pattern_sets:
        if patterns.as_written is None:
            keep_best(findings, patterns.findings(view, region, {}, 0))
    return sorted(findings.values(), key=by_place) if findings else []


def scan_in_slices(
    pattern_sets: Sequence[PatternSet],
    text: str,
    *,
    pos: int = 0,
    decoded: bool = True,
    json_escapes: bool = False,
    parts: Sequence[Part] | None = None,
    scan_short_failed: bool = False,
) -> Iterator[list[Finding]]:
    """Yield the findings of each slice.

    The length of a slice is adapted to the measured time, so that a slice takes at most a few milliseconds. The length
    does not affect the findings. `parts` are the spans of the texts that `text` consists of. An organization's own
    patterns are searched for only within these spans. `scan_short_failed` means that `scan_short` has returned None for
    the text."""
    if len(text) > MAX_SLICE_CHARACTERS and (
        others := [patterns for patterns in pattern_sets if patterns.as_written is None]
    ):
        # Search an organization's own patterns last: this search cannot be sliced and may block longer than a slice.
        # The slices before it have let the scheduler classify the text as long.
        yield from _in_slices(others, text, (), pos=pos, decoded=decoded, json_escapes=json_escapes)
        pattern_sets = [patterns for patterns in pattern_sets if patterns.as_written is not None]
        if not pattern_sets:
            return
    own: list[Finding] = []
    aborted: SearchAborted | None = None
    try:
        for part in _own_pattern_findings(pattern_sets, text, parts, json_escapes=json_escapes):
            own += [finding for finding in part if finding.start >= pos] if pos else part
            yield part
    except SearchAborted as error:
        aborted = error
    if not scan_short_failed and not pos and not json_escapes:
        short = scan_short(pattern_sets, text, decoded=decoded)
        if short is not None:
            yield _unknown(short, {by_place(finding): finding.score for finding in own})
            if aborted is not None:
                raise aborted
            return
    yield from _in_slices(pattern_sets, text, own, pos=pos, decoded=decoded, json_escapes=json_escapes)
    if aborted is not None:
        raise aborted


def _own_pattern_findings(
    pattern_sets: Sequence[PatternSet], text: str, parts: Sequence[Part] | None, *, json_escapes: bool
) -> Iterator[list[Finding]]:
    """Yield the findings of an organization's own patterns in the parts, or in the complete text if `parts` is None.
    Raises `SearchAborted` after the last finding."""
    if parts is None:
        parts = [(0, len(text))]
    own = [patterns.as_written for patterns in pattern_sets if patterns.as_written is not None]
    if not own or not parts:
        return
    views: list[View] = []
    for start, end in parts:
        views.append(seen(text[start:end], json_escapes=json_escapes))
        yield []
    texts = Texts(views, parts)
    aborted_sources: list[str] = []
    for patterns in own:
        try:
            yield from patterns.in_texts(texts)
        except SearchAborted as error:
            aborted_sources += error.sources
    if aborted_sources:
        raise SearchAborted(aborted_sources)


def _in_slices(
    pattern_sets: Sequence[PatternSet],
    text: str,
    own: Sequence[Finding],
    *,
    pos: int,
    decoded: bool,
    json_escapes: bool,
) -> Iterator[list[Finding]]:
    known = {by_place(finding): finding.score for finding in own}
    scanner = Scanner(pattern_sets, json_escapes=json_escapes, start=pos, known=KnownFindings(own), releases_late=True)
    if len(text) <= _MIN_SLICE_CHARACTERS:
        # Most texts have one slice.
        if text:
            scanner.push(text)
            findings, _ = scanner.advance(final=True)
            yield _unknown(findings, known)
            if decoded:
                decoded_findings = _decoded(pattern_sets, text, 0, pos, len(text), json_escapes=json_escapes)
                _add_scores(findings, known)
                yield _unknown(decoded_findings, known)
                _add_scores(decoded_findings, known)
                yield ciphers.Ciphers(pattern_sets, text, known, json_escapes=json_escapes).find(pos, len(text))
        return
    slices = _Slices(len(text))
    for start, stop in slices:
        scanner.push(text[start:stop])
        findings = _unknown(scanner.advance(final=stop == len(text))[0], known)
        _add_scores(findings, known)
        slices.adjust_size()
        yield findings
    if not decoded:
        return
    first = run = 0
    slices = _Slices(len(text))
    for start, stop in slices:
        first, run = _aligned(text, start, first, run)
        findings = _unknown(
            _decoded(pattern_sets, text, first, max(start, pos), stop, json_escapes=json_escapes), known
        )
        _add_scores(findings, known)
        slices.adjust_size()
        yield findings
    ciphers_search = ciphers.Ciphers(pattern_sets, text, known, json_escapes=json_escapes)
    slices = _Slices(len(text))
    for start, stop in slices:
        findings = _unknown(ciphers_search.find(max(start, pos), stop), known)
        _add_scores(findings, known)
        slices.adjust_size()
        yield findings


#: Maps the place of each finding to its score.
Scores: TypeAlias = dict[Place, float]


def _add_scores(findings: Iterable[Finding], known: Scores) -> None:
    for finding in findings:
        known[by_place(finding)] = finding.score


def _unknown(findings: list[Finding], known: Scores) -> list[Finding]:
    """Return the findings that are not in `known` or score higher than there."""
    if not known:
        return findings
    return [finding for finding in findings if known.get(by_place(finding), -1.0) < finding.score]


class _Slices:
    """Iterates over the start and end of each slice of a text of `length` code points. The caller must call
    `adjust_size` after the work on a slice."""

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

    def adjust_size(self) -> None:
        seconds = thread_time() - self._began
        if seconds > _SLOW_SLICE_SECONDS:
            self._size = max(self._size // 2, _MIN_SLICE_CHARACTERS)
        elif seconds < _SLOW_SLICE_SECONDS / 2.2:
            self._size = min(self._size * 2, MAX_SLICE_CHARACTERS)


def _aligned(text: str, start: int, before: int, run: int) -> tuple[int, int]:
    """Return the position from which to decode the slice that begins at `start`, and the start of the run of digits
    that contains this position. `before` and `run` are the results for the previous slice.

    A digit is a character of hex or base64; four base64 digits are a group. Decoding must start at the beginning of a
    group. Groups cannot be counted from the start of the run: digits that do not belong to the segment may precede it.
    Its first groups may also not encode ASCII. So positions are tried until the text there decodes to text."""
    first = max(0, start - _BEFORE_CHARACTERS)
    bare = len(text[before:first].rstrip(decoding.ALPHABET))
    run = before + bare if bare or not before else run
    if first <= run:
        return first, run
    # A repetitive segment may decode to text at two of the four possible offsets. The offset of the start of the run is
    # tried first.
    places = sorted(
        range(first, max(run, first - _MAX_ALIGNING_CHARACTERS) - 1, -1), key=lambda place: (place - run) % 4 != 0
    )
    for place in places:
        if decoding.reads_as_text(text[place : place + _PROBE_CHARACTERS]):
            return place, run
    return places[0], run


def _decoded(
    pattern_sets: Sequence[PatternSet], text: str, first: int, start: int, stop: int, *, json_escapes: bool
) -> list[Finding]:
    """Return the findings that begin between `start` and `stop` and are at least partly encoded."""
    candidates = decoding.candidates(text[first : stop + _LOOKAHEAD_CHARACTERS])
    if not candidates:
        return []
    findings: FindingsByPlace = {}
    for begin, end in _passages(candidates, first):
        if begin >= stop:
            break
        views = _decoded_views(text[begin : end + _AFTER_CHARACTERS], json_escapes=json_escapes)
        if any(patterns.openings.may_begin(view) for patterns in pattern_sets for view in views):
            views = _decoded_views(text[begin : end + _AFTER_LONG_SHAPES_CHARACTERS], json_escapes=json_escapes)
        # The decoded text may be JSON.
        nested = [escapes.nested_view(view, final=True) for view in views]
        for view in (*views, *(derived.view for derived in nested if derived is not None)):
            seams = view.replaced()
            for patterns in pattern_sets:
                over = regions_around_seams(seams, 0, view.at(stop - begin), len(view))
                keep_best(findings, patterns.findings(view, over, {}, begin))
    return [finding for finding in findings.values() if start <= finding.start < stop]


def _decoded_views(text: str, *, json_escapes: bool) -> list[View]:
    """Return the decoded views of a text. Its backslash escapes are decoded first, since a segment may be in JSON."""
    return decoding.decoded_views(escapes.without_escapes(seen(text, json_escapes=json_escapes)))


def _passages(candidates: Iterable[tuple[int, int]], first: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of text to decode for `candidates`. Positions of candidates are relative to `first`. Candidates
    near each other share one span. A span includes some text before its candidates."""
    begin = end = -1
    for start, stop in candidates:
        if begin >= 0 and start - _BEFORE_CHARACTERS > end + _AFTER_CHARACTERS:
            yield first + begin, first + end
            begin = -1
        if begin < 0:
            begin = max(0, start - _BEFORE_CHARACTERS)
        end = max(end, stop)
    if begin >= 0:
        yield first + begin, first + end
