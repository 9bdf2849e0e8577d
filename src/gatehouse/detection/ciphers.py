"""Values written backwards or in rot13, in whole texts.

Any number is another one backwards, and any word another one in rot13: what is read so counts only where something
speaks for it. A place is looked at where a token's known beginning stands in such a writing, or many digits do; or all
of a short text. A value of digits alone counts where it is all of a short text or a word of context is near it, and
with separators where its check digit speaks for it; and nothing counts in the place of what is found in the text as it
is written with as high a score.
"""

import re
from bisect import bisect_left, bisect_right
from codecs import encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection.findings import Finding, Found, Place, keep
from gatehouse.detection.normalise import View, seen
from gatehouse.detection.normalise.decoded import ENCODED
from gatehouse.detection.normalise.spaced import ROWS
from gatehouse.detection.pattern import NEAR
from gatehouse.detection.rules import Region, Rules
from gatehouse.detection.searching import ANYWHERE, Search, search_of
from gatehouse.detection.separator import TEXT_BEGINS, TEXT_ENDS

#: What is read around a place: a match, and what decides about it; and a match of the longest shapes.
_AROUND: Final = 512
_FAR: Final = 3072
#: How far before a place and behind it a candidate may go on, and how far behind it a value may begin backwards: with
#: the country's letters of an IBAN.
_BESIDE: Final = 64
#: A text is short up to so many characters.
_SHORT: Final = 128
#: A shorter beginning is in any text.
_SHORTEST_BEGINNING: Final = 3
_LONG_BEGINNING: Final = 5
_ROT13: Final = str.maketrans({chr(c): encode(chr(c), "rot13") for c in (*range(0x41, 0x5B), *range(0x61, 0x7B))})

_DIGITS: Final = r"(?:^|[^0-9A-Za-z.-])[0-9](?:[ ./()+-]{0,2}[0-9]){8,64}(?:[^0-9A-Za-z]|$)"
#: Digits with capitals before or behind them, as in an IBAN or the number of a passport.
_CAPITALS: Final = (
    r"\b(?:[A-Z]{1,4}[0-9]{2} ?[0-9]{3,24}|[0-9]{3,24} ?[0-9]{2}[A-Z]{1,4})[A-Z0-9]{0,4}\b",
    r"\b[A-Z]{2}[0-9]{2} ?[A-Z0-9]{4} ?[A-Z0-9]{4} ?[A-Z0-9]{3}",
)
_MAIL_BACKWARDS: Final = r"\b(?:moc|gro|ten|ude|vog|oi|ed|ku|rf|ti|se|ln|ue|hc|ta)\.[0-9A-Za-z.-]{1,64}@[0-9A-Za-z]"
_MAC_IN_ROT13: Final = r"\b[0-9N-Sn-s]{2}(?:[:-][0-9N-Sn-s]{2}){5}\b"
#: What makes a short text worth it.
_VALUE: Final = re.compile(r"(?s)[0-9].{0,4}[0-9].{0,4}[0-9]|@|//")
#: Tokens with digits in them, one blank apart.
_WORD: Final = r"[^\s\"'<>{}\[\],;]*[0-9@][^\s\"'<>{}\[\],;]*"
#: And up to three capitals beside them, as in a plate or an insurance number.
_TOKENS: Final = re.compile(rf"{_WORD}(?: (?:{_WORD}|[A-Z]{{1,3}}\b))*")
#: What ends a sentence, and no token.
_ENDS: Final = ".!?:"
_MARKS: Final = " \t\r\n\"',;."

#: The score that a value of digits alone needs.
_ENOUGH: Final = 0.7
_UNIX_TIME: Final = re.compile(r"1[4-9][0-9]{8}(?:[0-9]{3}){0,3}\Z")
#: Patterns whose values have no form: the name before them tells them, and they are found as they are written.
_FORMLESS: Final = frozenset({"high-entropy-string", "password", "api-key", "authorization-header"})
#: Patterns of so few characters that they are found in any writing.
_WEAK: Final = frozenset({"vehicle-plate"})
_PHONE: Final = "phone"
#: A letter in rot13 is another letter.
_FEWEST_LETTERS: Final = 2
_BETWEEN_DIGITS: Final = frozenset(" ./-")
_MAX_DISGUISES_BYTES: Final = 32 << 20

#: From where to where, in characters.
Span: TypeAlias = tuple[int, int]


class Looks:
    """The searches for what is worth reading: a beginning that is more than a word, in either writing, or numbers.
    `disguised` also finds what is encoded or set apart: one pass over a text instead of one for each way to read it."""

    def __init__(self, beginnings: Iterable[str]) -> None:
        known = sorted({each for each in beginnings if len(each) >= _SHORTEST_BEGINNING and _has_form(each)})
        # Within base64 any three characters stand somewhere between two of its signs.
        backwards = [f"{_rest(each)}{re2.escape(each[::-1])}(?:[^0-9A-Za-z+/_-]|$)" for each in known]
        in_rot13 = [
            (r"\b" if each[0].isalnum() else "") + re2.escape(each.translate(_ROT13)) + _rest(each) for each in known
        ]
        self.backwards = _any_of((*backwards, _DIGITS, *_CAPITALS, _MAIL_BACKWARDS))
        self.in_rot13 = _any_of((*in_rot13, *_CAPITALS, _MAC_IN_ROT13))
        either = (*backwards, *in_rot13, _DIGITS, *_CAPITALS, _MAIL_BACKWARDS, _MAC_IN_ROT13)
        self.either = _any_of(either)
        self.disguised = _any_of((ROWS, ENCODED, *either), max_bytes=_MAX_DISGUISES_BYTES)


def _rest(beginning: str) -> str:
    """What is known of a token behind a short beginning."""
    return "[0-9A-Za-z]{12}" if len(beginning) < _LONG_BEGINNING else ""


def _has_form(beginning: str) -> bool:
    """Whether it has letters, and is more than a word."""
    bare = beginning.replace(" ", "")
    return any(map(str.isalpha, bare)) and not (bare.isalpha() and bare.islower())


def _any_of(regexes: Iterable[str], *, max_bytes: int | None = None) -> Search:
    """`max_bytes` of memory for its automaton, where RE2's own bound is too low."""
    options = re2.Options()
    options.never_capture = True
    if max_bytes is not None:
        options.max_mem = max_bytes
    return search_of(re2.compile("|".join(regexes), options))


@lru_cache(maxsize=64)
def _looks(beginnings: tuple[frozenset[str], ...]) -> Looks:
    return Looks(chain.from_iterable(beginnings))


def looks_of(rules: Sequence[Rules]) -> Looks:
    """The searches for values of `rules`, without an organization's own, many of which are found in any writing."""
    return _looks(tuple(each.beginnings for each in rules if each.as_written is None))


def is_read_whole(text: str) -> bool:
    """Whether it is so short, and such, that all of it is read backwards and in rot13."""
    return len(text) <= _SHORT and _VALUE.search(text) is not None


class Turned(NamedTuple):
    """A text as it is read, where a value may begin in it, and the way back from a place in it to one in the text."""

    text: str
    places: list[Span]
    back: Callable[[int, int], Span | None]


#: Reads a text around the places given.
Reading: TypeAlias = Callable[[str, Sequence[Span]], Turned]


class Ciphers:
    """What is backwards or in rot13 in a text, and scores higher than what is `known` in the same place."""

    def __init__(
        self, rules: Sequence[Rules], text: str, known: Mapping[Place, float], *, json_escapes: bool = False
    ) -> None:
        self._rules = [each for each in rules if each.as_written is None]
        self._text = text
        self._json_escapes = json_escapes
        self._looks = looks_of(rules)
        self._known = known
        self._ranked: _Ranked | None = None

    def find(self, start: int, stop: int) -> list[Finding]:
        """At the places that begin between `start` and `stop`."""
        looks, text = self._looks, self._text
        if is_read_whole(text):
            places_backwards = places_in_rot13 = [(0, len(text))]
        else:
            window = max(0, start - _BESIDE)
            view = View(text[window : stop + _BESIDE])
            if looks.either(ANYWHERE, view.data, 0, len(view.data))[0][0] < 0:
                return []
            ranked = self._ranking()
            places_backwards, places_in_rot13 = (
                [p for p in _places(look, view, window) if start <= p[0] < stop and not ranked.is_certain(*p)]
                for look in (looks.backwards, looks.in_rot13)
            )
        found: Found = {}
        for places, reading in (
            (places_in_rot13, _in_rot13),
            (places_backwards, _tokens_backwards),
            (places_backwards, _backwards),
        ):
            for some in _near_each_other(places):
                keep(found, self._read(some, reading))
        return list(filter(self._ranking().above, found.values())) if found else []

    def _ranking(self) -> "_Ranked":
        if self._ranked is None:
            self._ranked = _Ranked(self._known)
        return self._ranked

    def _read(self, places: Sequence[Span], reading: Reading) -> Iterator[Finding]:
        rules, text = self._rules, self._text
        for around in (_AROUND, _FAR):
            begin = max(0, places[0][0] - around)
            base = seen(text[begin : places[-1][1] + around], json_escapes=self._json_escapes)
            here = [(base.at(first - begin), base.at(end - begin)) for first, end in places]
            turned = reading(base.text, here)
            view = View(turned.text)
            # The longest shapes begin with an opening of their own.
            if around == _FAR or not any(each.openings.opened(view) for each in rules):
                break
        starts = [first for first, _ in here]
        for each in rules:
            for found in each.findings(view, _regions(turned.places, len(view)), {}, 0):
                span = turned.back(found.start, found.end)
                if span is None:
                    continue
                first, end = span
                place = bisect_left(starts, end) - 1
                if place < 0 or here[place][1] <= first:
                    continue
                first, end = base.origin(first, end)
                named = each.is_named(view, found)
                in_rot13 = reading is _in_rot13
                if _counts(found, text, begin + first, begin + end, in_rot13=in_rot13, named=named):
                    yield Finding(begin + first, begin + end, found.entity_type, found.score, found.source)


class _Ranked:
    """Findings by where they begin."""

    def __init__(self, known: Mapping[Place, float]) -> None:
        self._findings = sorted((start, end, score) for (start, end, _), score in known.items())
        self._starts = [start for start, _, _ in self._findings]

    def above(self, finding: Finding) -> bool:
        """Whether it scores higher than all that overlap it and are no longer than most."""
        near = range(bisect_left(self._starts, finding.start - NEAR), bisect_left(self._starts, finding.end))
        return all(
            end <= finding.start or score < finding.score for _, end, score in map(self._findings.__getitem__, near)
        )

    def is_certain(self, start: int, end: int) -> bool:
        """Whether a finding that nothing can score higher than takes all from `start` to `end`, but for the character
        on either side that a place has."""
        near = range(bisect_left(self._starts, start - NEAR), bisect_right(self._starts, start + 1))
        return any(behind >= end - 1 and score >= 1.0 for _, behind, score in map(self._findings.__getitem__, near))


def _places(look: Search, view: View, window: int) -> Iterator[Span]:
    data, place = view.data, 0
    while (span := look(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        yield window + view.character(span[0]), window + view.character(span[1])
        place = span[1]


def _near_each_other(places: Iterable[Span]) -> Iterator[list[Span]]:
    """The places in groups that are read together."""
    group: list[Span] = []
    for place in places:
        if group and place[0] - group[-1][1] > 2 * _AROUND:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _regions(places: Iterable[Span], length: int) -> Iterator[Region]:
    last = 0
    for place, behind in sorted(places):
        first, end = max(place, last), min(behind, length)
        if first < end:
            yield Region(first, end, min(length, end + NEAR + 2))
            last = end


def _in_rot13(text: str, places: Sequence[Span]) -> Turned:
    return Turned(text.translate(_ROT13), list(places), lambda start, end: (start, end))


def _backwards(text: str, places: Sequence[Span]) -> Turned:
    length = len(text)
    mirrored = [(max(0, length - end - _BESIDE), length - start) for start, end in places]
    return Turned(text[::-1], mirrored, lambda start, end: (length - end, length - start))


def _tokens_backwards(text: str, places: Sequence[Span]) -> Turned:
    """Only the tokens, so that the words beside them speak for them."""
    tokens: list[Span] = []
    pieces: list[str] = []
    last = 0
    for start, end in places:
        for found in _TOKENS.finditer(text, max(last, start - _BESIDE), min(len(text), end + _BESIDE)):
            if found.start() < end and start < found.end():
                token = found[0].rstrip(_ENDS)
                tokens.append((found.start(), found.start() + len(token)))
                pieces += (text[last : found.start()], token[::-1])
                last = tokens[-1][1]
    pieces.append(text[last:])
    starts = [start for start, _ in tokens]

    def back(start: int, end: int) -> Span | None:
        place = bisect_right(starts, start) - 1
        if place < 0 or tokens[place][1] < end:
            return None
        first, behind = tokens[place]
        return first + behind - end, first + behind - start

    # A match may begin with the character before its value.
    return Turned("".join(pieces), [(max(0, first - 1), end) for first, end in tokens], back)


def _counts(found: Finding, text: str, start: int, end: int, *, in_rot13: bool, named: bool) -> bool:
    """`named`: a word of context is near it."""
    value = text[start:end]
    if found.source in _FORMLESS:
        return False
    alone = _is_alone(text, start, end)
    if found.source in _WEAK:
        return alone or named or found.score >= _ENOUGH
    letters = sum(map(str.isalpha, value))
    if in_rot13 and letters < _FEWEST_LETTERS and not (named or found.score >= _ENOUGH):
        return False
    if letters or "@" in value:
        return True
    if "\n" in value or _UNIX_TIME.match(value) or _goes_on(text, start, end):
        return False
    # A bracket that closes before it opens is backwards.
    if named or alone or 0 <= value.find(")") < value.find("("):
        return True
    # Of the numbers of a log, some have check digits backwards.
    bare = value.isdigit() or (found.source == _PHONE and not value.endswith("+"))
    return not bare and found.score >= _ENOUGH


def _is_alone(text: str, start: int, end: int) -> bool:
    """Whether it is all of a short text, or of one of those that `text` is made of, but for marks."""
    first = text.rfind(TEXT_BEGINS, max(0, start - _SHORT), start) + len(TEXT_BEGINS)
    behind = text.find(TEXT_ENDS, end, end + _SHORT)
    first = first if first >= len(TEXT_BEGINS) else 0
    behind = behind if behind >= 0 else len(text)
    return behind - first <= _SHORT and text[first:behind].strip(_MARKS) == text[start:end].strip(_MARKS)


def _goes_on(text: str, start: int, end: int) -> bool:
    """Whether there are more digits beside those from `start` to `end`."""
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    return before[-1:].isdigit() or behind[:1].isdigit() or _beside(before[::-1]) or _beside(behind)


def _beside(near: str) -> bool:
    return len(near) == 2 and near[0] in _BETWEEN_DIGITS and near[1].isdigit()
