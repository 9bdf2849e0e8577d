"""Searches complete texts for values that are written backwards or in rot13.

Every number is another number when it is reversed, and every word is another word in rot13. A transformed value
therefore counts only with evidence:

- A place in the text is examined if it contains the transformed beginning of a known token or many digits. A short text
  is examined completely.
- A value that consists only of digits counts if it is near a context word or is a complete short text.
- A value of digits with separators also counts if its check digit is right.
- A finding counts only if it scores higher than all overlapping findings in the original text.
"""

import re
from bisect import bisect_left, bisect_right
from codecs import encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection.findings import Finding, FindingsByPlace, Place, keep_best
from gatehouse.detection.normalise import View, seen
from gatehouse.detection.normalise.decoded import ENCODED
from gatehouse.detection.normalise.spaced import ROWS
from gatehouse.detection.pattern import NEAR_CHARACTERS
from gatehouse.detection.pattern_set import PatternSet, Region
from gatehouse.detection.regex.byte_search import ANYWHERE, Search, search_of
from gatehouse.detection.separator import TEXT_BEGINS, TEXT_ENDS

#: Number of characters read before and after a place: enough for a match and its context words.
_CONTEXT_CHARACTERS: Final = 512
#: The same number if a match of the longest shapes may begin at the place.
_LONG_CONTEXT_CHARACTERS: Final = 3072
#: Number of characters by which a value may extend before and after a place. A reversed IBAN, for example, ends with
#: its country code, which may be after the place.
_MARGIN_CHARACTERS: Final = 64
#: Maximum characters of a short text.
_MAX_SHORT_TEXT: Final = 128
#: Minimum characters of a beginning that is searched for. Shorter beginnings occur in any text.
_MIN_BEGINNING: Final = 3
#: Minimum characters of a beginning that is searched for without the 12 letters or digits that follow it.
_MIN_DISTINCTIVE_BEGINNING: Final = 5
_ROT13: Final = str.maketrans({chr(c): encode(chr(c), "rot13") for c in (*range(0x41, 0x5B), *range(0x61, 0x7B))})

_DIGITS: Final = r"(?:^|[^0-9A-Za-z.-])[0-9](?:[ ./()+-]{0,2}[0-9]){8,64}(?:[^0-9A-Za-z]|$)"
#: Digits with capital letters before or after them, as in an IBAN or a passport number.
_CAPITALS: Final = (
    r"\b(?:[A-Z]{1,4}[0-9]{2} ?[0-9]{3,24}|[0-9]{3,24} ?[0-9]{2}[A-Z]{1,4})[A-Z0-9]{0,4}\b",
    r"\b[A-Z]{2}[0-9]{2} ?[A-Z0-9]{4} ?[A-Z0-9]{4} ?[A-Z0-9]{3}",
)
_MAIL_BACKWARDS: Final = r"\b(?:moc|gro|ten|ude|vog|oi|ed|ku|rf|ti|se|ln|ue|hc|ta)\.[0-9A-Za-z.-]{1,64}@[0-9A-Za-z]"
_MAC_IN_ROT13: Final = r"\b[0-9N-Sn-s]{2}(?:[:-][0-9N-Sn-s]{2}){5}\b"
#: Content that a short text must have to be examined completely.
_VALUE: Final = re.compile(r"(?s)[0-9].{0,4}[0-9].{0,4}[0-9]|@|//")
#: A token that contains a digit or an `@`.
_WORD: Final = r"[^\s\"'<>{}\[\],;]*[0-9@][^\s\"'<>{}\[\],;]*"
#: Such tokens, one blank apart. Between them may be groups of up to three capital letters, as in a vehicle plate or an
#: insurance number.
_TOKENS: Final = re.compile(rf"{_WORD}(?: (?:{_WORD}|[A-Z]{{1,3}}\b))*")
#: Characters that end a sentence. They are not part of the token before them.
_SENTENCE_ENDS: Final = ".!?:"
_PUNCTUATION: Final = " \t\r\n\"',;."

#: Minimum score of a value that consists only of digits and separators and has no other evidence.
_MIN_DIGITS_SCORE: Final = 0.7
_UNIX_TIME: Final = re.compile(r"1[4-9][0-9]{8}(?:[0-9]{3}){0,3}\Z")
#: Patterns whose values have no form of their own. These values are recognised only by the name before them, which is
#: not transformed.
_FORMLESS: Final = frozenset({"high-entropy-string", "password", "api-key", "authorization-header"})
#: Patterns whose values are so short that any transformed text contains matches.
_WEAK: Final = frozenset({"vehicle-plate"})
_PHONE: Final = "phone"
#: Minimum letters of a value in rot13. One letter proves nothing, because each letter is another letter in rot13.
_MIN_ROT13_LETTERS: Final = 2
_DIGIT_SEPARATORS: Final = frozenset(" ./-")
_MAX_DISGUISES_BYTES: Final = 32 << 20

#: Start and end, in characters.
Span: TypeAlias = tuple[int, int]


class PlaceSearches:
    """Searches for the places to examine: numbers, and beginnings of known tokens that are written backwards or in
    rot13. `disguised` also matches encoded text and spaced text, so that one pass over a text replaces one pass for
    each kind of disguise."""

    def __init__(self, beginnings: Iterable[str]) -> None:
        known = sorted(
            {beginning for beginning in beginnings if len(beginning) >= _MIN_BEGINNING and _has_form(beginning)}
        )
        # A character of base64 must not follow, because base64 contains any three letters by chance.
        backwards = [
            f"{_token_rest(beginning)}{re2.escape(beginning[::-1])}(?:[^0-9A-Za-z+/_-]|$)" for beginning in known
        ]
        in_rot13 = [
            (r"\b" if beginning[0].isalnum() else "") + re2.escape(beginning.translate(_ROT13)) + _token_rest(beginning)
            for beginning in known
        ]
        self.backwards = _any_of((*backwards, _DIGITS, *_CAPITALS, _MAIL_BACKWARDS))
        self.in_rot13 = _any_of((*in_rot13, *_CAPITALS, _MAC_IN_ROT13))
        either = (*backwards, *in_rot13, _DIGITS, *_CAPITALS, _MAIL_BACKWARDS, _MAC_IN_ROT13)
        self.either = _any_of(either)
        self.disguised = _any_of((ROWS, ENCODED, *either), max_bytes=_MAX_DISGUISES_BYTES)


def _token_rest(beginning: str) -> str:
    """Return a regex for the characters of a token after its beginning. It is empty for a distinctive beginning."""
    return "[0-9A-Za-z]{12}" if len(beginning) < _MIN_DISTINCTIVE_BEGINNING else ""


def _has_form(beginning: str) -> bool:
    """Return whether the beginning has letters and is not just a lower-case word."""
    bare = beginning.replace(" ", "")
    return any(map(str.isalpha, bare)) and not (bare.isalpha() and bare.islower())


def _any_of(regexes: Iterable[str], *, max_bytes: int | None = None) -> Search:
    """Return one search for all of the regexes. `max_bytes` is the maximum memory of its automaton; None means RE2's
    default."""
    options = re2.Options()
    options.never_capture = True
    if max_bytes is not None:
        options.max_mem = max_bytes
    return search_of(re2.compile("|".join(regexes), options))


@lru_cache(maxsize=64)
def _cached_searches(beginnings: tuple[frozenset[str], ...]) -> PlaceSearches:
    return PlaceSearches(chain.from_iterable(beginnings))


def place_searches(pattern_sets: Sequence[PatternSet]) -> PlaceSearches:
    """Return the place searches for the values of `pattern_sets`. An organization's own patterns are left out, because
    many of them would match any transformed text."""
    return _cached_searches(tuple(patterns.beginnings for patterns in pattern_sets if patterns.as_written is None))


def is_read_whole(text: str) -> bool:
    """Return whether the text is short and contains a possible value, so that it is examined completely."""
    return len(text) <= _MAX_SHORT_TEXT and _VALUE.search(text) is not None


class Transformed(NamedTuple):
    """A transformed text and the places in it where a value may begin. `back` maps a span of the transformed text to
    the original text, or returns None if the span has no counterpart."""

    text: str
    places: list[Span]
    back: Callable[[int, int], Span | None]


#: A function that transforms a text around some places.
Transformation: TypeAlias = Callable[[str, Sequence[Span]], Transformed]


class Ciphers:
    """Searches a text for values that are written backwards or in rot13. Returns only findings that score higher than
    all `known` findings that they overlap."""

    def __init__(
        self, pattern_sets: Sequence[PatternSet], text: str, known: Mapping[Place, float], *, json_escapes: bool = False
    ) -> None:
        self._pattern_sets = [patterns for patterns in pattern_sets if patterns.as_written is None]
        self._text = text
        self._json_escapes = json_escapes
        self._searches = place_searches(pattern_sets)
        self._known = known
        self._ranked: _Ranked | None = None

    def find(self, start: int, stop: int) -> list[Finding]:
        """Return the findings at the places that begin between `start` and `stop`."""
        searches, text = self._searches, self._text
        if is_read_whole(text):
            places_backwards = places_in_rot13 = [(0, len(text))]
        else:
            window = max(0, start - _MARGIN_CHARACTERS)
            view = View(text[window : stop + _MARGIN_CHARACTERS])
            if searches.either(ANYWHERE, view.data, 0, len(view.data))[0][0] < 0:
                return []
            ranked = self._ranking()
            places_backwards, places_in_rot13 = (
                [
                    place
                    for place in _places(search, view, window)
                    if start <= place[0] < stop and not ranked.is_certain(*place)
                ]
                for search in (searches.backwards, searches.in_rot13)
            )
        findings: FindingsByPlace = {}
        for places, transformation in (
            (places_in_rot13, _in_rot13),
            (places_backwards, _tokens_backwards),
            (places_backwards, _backwards),
        ):
            for group in _groups_of(places):
                keep_best(findings, self._read(group, transformation))
        return list(filter(self._ranking().above, findings.values())) if findings else []

    def _ranking(self) -> "_Ranked":
        if self._ranked is None:
            self._ranked = _Ranked(self._known)
        return self._ranked

    def _read(self, places: Sequence[Span], transform: Transformation) -> Iterator[Finding]:
        pattern_sets, text = self._pattern_sets, self._text
        for margin in (_CONTEXT_CHARACTERS, _LONG_CONTEXT_CHARACTERS):
            begin = max(0, places[0][0] - margin)
            base = seen(text[begin : places[-1][1] + margin], json_escapes=self._json_escapes)
            view_places = [(base.at(first - begin), base.at(end - begin)) for first, end in places]
            transformed = transform(base.text, view_places)
            view = View(transformed.text)
            # Only matches of the longest shapes need more surrounding text. These shapes have an opening.
            if margin == _LONG_CONTEXT_CHARACTERS or not any(
                patterns.openings.may_begin(view) for patterns in pattern_sets
            ):
                break
        starts = [first for first, _ in view_places]
        for patterns in pattern_sets:
            for finding in patterns.findings(view, _regions(transformed.places, len(view)), {}, 0):
                span = transformed.back(finding.start, finding.end)
                if span is None:
                    continue
                first, end = span
                index = bisect_left(starts, end) - 1
                if index < 0 or view_places[index][1] <= first:
                    continue
                first, end = base.origin(first, end)
                named = patterns.is_named(view, finding)
                in_rot13 = transform is _in_rot13
                if _has_evidence(finding, text, begin + first, begin + end, in_rot13=in_rot13, named=named):
                    yield Finding(begin + first, begin + end, finding.entity_type, finding.score, finding.source)


class _Ranked:
    """Findings sorted by start."""

    def __init__(self, known: Mapping[Place, float]) -> None:
        self._findings = sorted((start, end, score) for (start, end, _), score in known.items())
        self._starts = [start for start, _, _ in self._findings]

    def above(self, finding: Finding) -> bool:
        """Return whether the finding scores higher than all overlapping findings. Findings that begin more than
        `NEAR_CHARACTERS` before it are not examined."""
        indexes = range(
            bisect_left(self._starts, finding.start - NEAR_CHARACTERS), bisect_left(self._starts, finding.end)
        )
        return all(
            end <= finding.start or score < finding.score for _, end, score in map(self._findings.__getitem__, indexes)
        )

    def is_certain(self, start: int, end: int) -> bool:
        """Return whether a finding with score 1.0 covers the place from `start` to `end`. The first and the last
        character of a place need not be covered, because they are not part of its value."""
        indexes = range(bisect_left(self._starts, start - NEAR_CHARACTERS), bisect_right(self._starts, start + 1))
        return any(
            finding_end >= end - 1 and score >= 1.0
            for _, finding_end, score in map(self._findings.__getitem__, indexes)
        )


def _places(search: Search, view: View, window: int) -> Iterator[Span]:
    data, place = view.data, 0
    while (span := search(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        yield window + view.character(span[0]), window + view.character(span[1])
        place = span[1]


def _groups_of(places: Iterable[Span]) -> Iterator[list[Span]]:
    """Yield the places in groups. The places of a group are near each other and are examined together."""
    group: list[Span] = []
    for place in places:
        if group and place[0] - group[-1][1] > 2 * _CONTEXT_CHARACTERS:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _regions(places: Iterable[Span], length: int) -> Iterator[Region]:
    last = 0
    for place, stop in sorted(places):
        first, end = max(place, last), min(stop, length)
        if first < end:
            yield Region(first, end, min(length, end + NEAR_CHARACTERS + 2))
            last = end


def _in_rot13(text: str, places: Sequence[Span]) -> Transformed:
    return Transformed(text.translate(_ROT13), list(places), lambda start, end: (start, end))


def _backwards(text: str, places: Sequence[Span]) -> Transformed:
    length = len(text)
    mirrored = [(max(0, length - end - _MARGIN_CHARACTERS), length - start) for start, end in places]
    return Transformed(text[::-1], mirrored, lambda start, end: (length - end, length - start))


def _tokens_backwards(text: str, places: Sequence[Span]) -> Transformed:
    """Reverse only the tokens at the places. The words next to them are unchanged, so that they are treated as context
    words."""
    tokens: list[Span] = []
    pieces: list[str] = []
    last = 0
    for start, end in places:
        for match in _TOKENS.finditer(
            text, max(last, start - _MARGIN_CHARACTERS), min(len(text), end + _MARGIN_CHARACTERS)
        ):
            if match.start() < end and start < match.end():
                token = match[0].rstrip(_SENTENCE_ENDS)
                tokens.append((match.start(), match.start() + len(token)))
                pieces += (text[last : match.start()], token[::-1])
                last = tokens[-1][1]
    pieces.append(text[last:])
    starts = [start for start, _ in tokens]

    def back(start: int, end: int) -> Span | None:
        index = bisect_right(starts, start) - 1
        if index < 0 or tokens[index][1] < end:
            return None
        first, last = tokens[index]
        return first + last - end, first + last - start

    # The place begins one character before the token, because a match may include the character before its value.
    return Transformed("".join(pieces), [(max(0, first - 1), end) for first, end in tokens], back)


def _has_evidence(finding: Finding, text: str, start: int, end: int, *, in_rot13: bool, named: bool) -> bool:
    """Return whether there is enough evidence for a finding. `named` is true if a context word is near it."""
    value = text[start:end]
    if finding.source in _FORMLESS:
        return False
    alone = _is_alone(text, start, end)
    if finding.source in _WEAK:
        return alone or named or finding.score >= _MIN_DIGITS_SCORE
    letters = sum(map(str.isalpha, value))
    if in_rot13 and letters < _MIN_ROT13_LETTERS and not (named or finding.score >= _MIN_DIGITS_SCORE):
        return False
    if letters or "@" in value:
        return True
    if "\n" in value or _UNIX_TIME.match(value) or _has_adjacent_digits(text, start, end):
        return False
    # A closing bracket before the opening one proves that the value is reversed.
    if named or alone or 0 <= value.find(")") < value.find("("):
        return True
    # Digits without separators need other evidence, because some numbers in logs have a right check digit when
    # reversed.
    bare = value.isdigit() or (finding.source == _PHONE and not value.endswith("+"))
    return not bare and finding.score >= _MIN_DIGITS_SCORE


def _is_alone(text: str, start: int, end: int) -> bool:
    """Return whether the value, apart from punctuation, is a complete short text. `text` may consist of several texts
    with separators."""
    first = text.rfind(TEXT_BEGINS, max(0, start - _MAX_SHORT_TEXT), start) + len(TEXT_BEGINS)
    stop = text.find(TEXT_ENDS, end, end + _MAX_SHORT_TEXT)
    first = first if first >= len(TEXT_BEGINS) else 0
    stop = stop if stop >= 0 else len(text)
    return stop - first <= _MAX_SHORT_TEXT and text[first:stop].strip(_PUNCTUATION) == text[start:end].strip(
        _PUNCTUATION
    )


def _has_adjacent_digits(text: str, start: int, end: int) -> bool:
    """Return whether a digit is next to the value, or is separated from it by one of `_DIGIT_SEPARATORS`."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    return (
        before[-1:].isdigit() or after[:1].isdigit() or _is_separated_digit(before[::-1]) or _is_separated_digit(after)
    )


def _is_separated_digit(characters: str) -> bool:
    return len(characters) == 2 and characters[0] in _DIGIT_SEPARATORS and characters[1].isdigit()
