"""Chains of texts over which a value may go: texts that follow each other and whose ends look like pieces of one.

A chain is searched as one text, made of its texts' ends (`join`).
"""

import re
import string
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection.as_written import Part
from gatehouse.detection.pattern import NEAR
from gatehouse.detection.searching import ANYWHERE, search_of
from gatehouse.detection.separator import SEPARATOR
from gatehouse.engine.conversation.following import Place
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.steps import Steps

#: Characters of a text before a seam, and of the next one behind it, that are looked at.
WINDOW_CHARACTERS: Final = NEAR
#: Those nearest to a seam tell whether a value may go over it.
_NEAREST: Final = 40
#: Digits near a seam, at least, of a number that goes over it.
MIN_NUMBER_DIGITS: Final = 8
#: Characters, at least, of a token of letters and digits.
_SHORTEST_TOKEN: Final = 16
#: Texts that are looked at before others may have their turn.
TEXTS_PER_STEP: Final = 256

#: Of more texts the last ones begin another chain: no value has more pieces than characters.
_LONGEST_CHAIN: Final = 8 * WINDOW_CHARACTERS


def _regex(regex: str) -> Callable[[str], bool]:
    """Whether it matches anywhere in a text."""
    search = search_of(re2.compile(regex))

    def matches(text: str) -> bool:
        data = text.encode(errors="replace")
        return search(ANYWHERE, data, 0, len(data))[0][0] >= 0

    return matches


#: Where dialects have the texts of a conversation.
_KEYS: Final = frozenset({"content", "text", "system", "instructions"})
_NO_DIGIT: Final = bytes(set(range(128)) - set(b"0123456789"))
_DIGIT: Final = re.compile(r"\d")
#: Between texts where they are looked at for what their ends are made of.
_SEAM: Final = "\x1d"
#: Between the two ends of one.
_WITHIN: Final = "\x1e"
_DECIMALS: Final = "".join(filter(str.isdecimal, map(chr, range(sys.maxunicode + 1))))
_NOT_DRAWN: Final = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
#: What numbers in groups are made of.
_GROUPS: Final = _DECIMALS + string.ascii_uppercase + " -./\u00a0\u2009\u2010\u2011\u202f" + _NOT_DRAWN
#: A text that is one piece: groups of digits and capitals, or one token.
_PIECE: Final = re.compile(r"[0-9A-Z]{1,19}(?:[ -][0-9A-Z]{1,19})*|\S*")

#: What stands around a piece and is no part of it.
#: All blanks, and quotes, brackets, dashes and the like.
_MARKS: Final = (
    "".join(filter(str.isspace, map(chr, range(0x3001))))
    + "\"'`\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u2026.,;:()[]*-\u2013\u2014"
)
#: What announces another piece, in four languages.
_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        and then the rest remaining remainder of it is are goes on to be with by followed continued continues continue
        cont next now more again last first second third fourth other half part piece digits numbers here
        und dann der die das den ist sind weiter geht es mit hälfte teil zweite erste letzte restlichen ziffern
        et puis la le les suite reste est sont moitié partie chiffres deuxième première
        y luego el resto son mitad parte segunda primera cifras
        """,
    )
)
_MARK: Final = f"[{re.escape(_MARKS)}]"
_NUMBERED: Final = "(?:part|piece|half|teil|partie|parte) ?[1-9]"
#: At the beginning of a text, and anywhere between two pieces.
_ANNOUNCED: Final = re.compile(rf"{_MARK}*(?:(?:{_NUMBERED}|{'|'.join(_WORDS)}){_MARK}+){{0,8}}", re.IGNORECASE)
_BETWEEN: Final = rf"(?:[^\pL\p{{Nd}}{_SEAM}{_WITHIN}]|(?i:{_NUMBERED}|{'|'.join(sorted(_WORDS))}))*"
#: What tokens have and words have not.
_OF_TOKEN: Final = rf"(?:\pL{_SEAM}*\p{{Nd}}|\p{{Nd}}{_SEAM}*\pL|[a-z][A-Z]|[A-Z]{{8}}|_)"
_is_of_token: Final = _regex(_OF_TOKEN)
#: Digits or groups of capitals that end a text, and those that begin one.
_ENDING: Final = r"(?:\p{Nd}(?: ?[A-Z]{1,6})?|\b[A-Z]{1,6})"
_BEGINNING: Final = rf"(?:\p{{Nd}}|[A-Z]{{1,6}}(?:[ -]?\p{{Nd}}|{_SEAM}|\z))"
#: A number or a token that reaches a seam, but for what announces its rest.
_goes_on: Final = _regex(
    rf"{_ENDING}{_BETWEEN}{_SEAM}{_BETWEEN}{_BEGINNING}"
    rf"|{_OF_TOKEN}[^\s{_WITHIN}]*{_BETWEEN}{_SEAM}|{_SEAM}{_BETWEEN}[^\s{_WITHIN}]*{_OF_TOKEN}"
)
#: The longest of the words, with a mark.
_LONGEST_WORD: Final = 16


class _Text(NamedTuple):
    """`number`: which text it is. What is no part of a piece stands before `first` and from `behind` on. `whole`: all
    between them may be one piece."""

    number: int
    text: str
    first: int
    behind: int
    whole: bool

    def before_seam(self, length: int) -> str:
        return self.text[max(self.first, self.behind - length) : self.behind]

    def behind_seam(self, length: int) -> str:
        return self.text[self.first : min(self.behind, self.first + length)]


#: Texts of which each may hold a piece of one value: the end of the first, all of those between, the beginning of the
#: last.
Chain: TypeAlias = list[_Text]


class TextWindow(NamedTuple):
    """A stretch of text `number`, and where it begins among the joined ones."""

    number: int
    start: int
    end: int
    begins: int


#: Where a piece of a value is: the number of its text, and from where to where in that.
Piece: TypeAlias = tuple[int, int, int]


class JoinedEnds(NamedTuple):
    """JoinedEnds of texts, joined. `chains` are where those of a chain begin and end. What is behind `direct` is joined
    without what announces the pieces, or with a blank between them."""

    text: str
    windows: list[TextWindow]
    chains: list[Part]
    direct: int

    @property
    def as_they_stand(self) -> list[Part]:
        return [part for part in self.chains if part[1] <= self.direct]

    def pieces(self, start: int, end: int) -> list[Piece]:
        """The texts that a stretch lies in, and where in each."""
        place = bisect_right(self.windows, start, key=_begins) - 1
        pieces = []
        for window in self.windows[place : bisect_left(self.windows, end, key=_begins)]:
            first = max(window.start, window.start + start - window.begins)
            last = min(window.end, window.start + end - window.begins)
            if first < last:
                pieces.append((window.number, first, last))
        return pieces


def _begins(window: TextWindow) -> int:
    return window.begins


def may_be_split(texts: Sequence[Slot]) -> Steps[bool]:
    """Whether the ends of texts hold what a value could be made of. Most requests end here."""
    ends: list[str] = []
    for count, slot in enumerate(texts):
        if count % TEXTS_PER_STEP == TEXTS_PER_STEP - 1:
            yield
        if slot.key in _KEYS:
            ends.append(_ends(slot.text))
    return len(ends) > 1 and _may_be_of_value(_SEAM.join(ends))


def build_chains(texts: Sequence[Slot], sequences: Iterable[Sequence[Place]]) -> Steps[list[Chain]]:
    """The texts over which a value may go, of those that follow each other in `sequences`."""
    likely: list[Sequence[Place]] = []
    for sequence in sequences:
        likely += yield from _likely(sequence)
    if not likely:
        return []
    numbers = {(id(slot.holder), slot.key): number for number, slot in enumerate(texts) if _can_change(slot)}
    found: list[Chain] = []
    for places in likely:
        chain: Chain = []
        for holder, key in places:
            yield
            number = numbers.get((id(holder), key))
            if number is None:
                continue
            text = _read(number, texts[number].text)
            chain.append(text)
            if not text.whole or len(chain) == _LONGEST_CHAIN:
                if _may_hold_value(chain):
                    found.append(chain)
                chain = chain[-WINDOW_CHARACTERS:] if text.whole else [text]
        if _may_hold_value(chain):
            found.append(chain)
    return found


def _likely(sequence: Sequence[Place]) -> Steps[list[Sequence[Place]]]:
    """The same at a glance: what announces a piece counts as a part of it."""
    together = _SEAM.join([_ends(holder[key]) for holder, key in sequence])
    if len(sequence) < 2 or not ("@" in together or _goes_on(together)):
        return []
    found: list[Sequence[Place]] = []
    first = 0
    nearest: list[str] = []
    for number, (holder, key) in enumerate(sequence):
        if number % TEXTS_PER_STEP == TEXTS_PER_STEP - 1:
            yield
        text = holder[key]
        # One token, or groups of digits and capitals.
        if len(text) <= WINDOW_CHARACTERS and (" " not in text or (len(text) <= _NEAREST and text == text.upper())):
            nearest.append(text)
            continue
        if number:
            nearest.append(text[:_NEAREST])
            if _may_go_on(_SEAM.join(nearest)):
                found.append(sequence[first : number + 1])
        first, nearest = number, [text[-_NEAREST:]]
    if len(nearest) > 1 and _may_go_on(_SEAM.join(nearest)):
        found.append(sequence[first:])
    return found


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _NEAREST else f"{text[:_NEAREST]}{_WITHIN}{text[-_NEAREST:]}"


def _may_go_on(nearest: str) -> bool:
    return "@" in nearest or (_goes_on(nearest) and _may_be_of_value(nearest))


def _may_be_of_value(nearest: str) -> bool:
    return "@" in nearest or _digits(nearest) >= MIN_NUMBER_DIGITS or _is_of_token(nearest)


def _can_change(slot: Slot) -> bool:
    return not (slot.json_text or slot.is_key or slot.is_sealed or slot.is_extract or slot.attachment is not None)


def _read(number: int, text: str) -> _Text:
    first = _before_piece(text)
    behind = _behind_piece(text, first)
    whole = behind - first <= WINDOW_CHARACTERS and _PIECE.fullmatch(text, first, behind) is not None
    return _Text(number, text, first, behind, whole)


def _before_piece(text: str) -> int:
    """From where on a piece may stand: behind what announces it."""
    if not text or (text[0] not in _MARKS and _first_word(text) not in _WORDS):
        return 0
    announced = _ANNOUNCED.match(text, 0, WINDOW_CHARACTERS)
    return announced.end() if announced is not None else 0


def _first_word(text: str) -> str:
    return text[:_LONGEST_WORD].split(maxsplit=1)[0].rstrip(_MARKS).lower()


def _behind_piece(text: str, first: int) -> int:
    """Up to where a piece may go that another one follows: before the words that announce that one."""
    near = max(first, len(text) - WINDOW_CHARACTERS)
    behind = near + len(text[near:].rstrip(_MARKS))
    while behind > near:
        word = text[max(near, behind - _LONGEST_WORD) : behind].rsplit(maxsplit=1)[-1]
        if word.lower() not in _WORDS:
            break
        behind = near + len(text[near : behind - len(word)].rstrip(_MARKS))
    return behind


def _may_hold_value(chain: Chain) -> bool:
    if len(chain) < 2:
        return False
    before, *behind = chain[0].before_seam(_NEAREST), *(text.behind_seam(_NEAREST) for text in chain[1:])
    # Of a number only what stands beside the seam counts: what a sentence tells has others.
    groups = before[len(before.rstrip(_GROUPS)) :] + "".join(
        each[: len(each) - len(each.lstrip(_GROUPS))] for each in behind
    )
    if _digits(groups) >= MIN_NUMBER_DIGITS:
        return True
    tokens = [*before.rsplit(None, 1)[-1:], *(token for each in behind for token in each.split(None, 1)[:1])]
    together = "".join(tokens)
    if "@" in together:
        return True
    # A number that ends a sentence and the word that begins the next one are no token.
    return len(together) >= _SHORTEST_TOKEN and _is_of_token(together if len(chain) > 2 else " ".join(tokens))


def _digits(text: str) -> int:
    digits = text.encode(errors="replace").translate(None, _NO_DIGIT)
    return len(digits) if digits.isascii() else len(_DIGIT.findall(text))


def join_ends(found: Sequence[Chain]) -> Steps[JoinedEnds]:
    """The chains as they stand, without what announces their pieces, and with blanks between their pieces."""
    texts: list[str] = [SEPARATOR]
    windows: list[TextWindow] = []
    parts: list[Part] = []
    end = direct = len(SEPARATOR)
    for chains_so, bare, between in ((found, False, ""), (found, True, ""), (found, True, " ")):
        for chain in chains_so:
            if bare and not between and not _announces(chain):
                continue
            begin = end
            for number, text in enumerate(chain):
                yield
                is_last = number == len(chain) - 1
                window = _window(text, is_first=number == 0, is_last=is_last, bare=bare)
                behind = SEPARATOR if is_last else between
                windows.append(TextWindow(text.number, *window, end))
                texts += (text.text[slice(*window)], behind)
                end += window[1] - window[0] + len(behind)
            parts.append((begin, end - len(SEPARATOR)))
        direct = direct if bare else end
    return JoinedEnds("".join(texts), windows, parts, direct)


def _announces(chain: Chain) -> bool:
    """Whether something stands between the pieces."""
    return any(text.behind < len(text.text) for text in chain[:-1]) or any(text.first for text in chain[1:])


def _window(text: _Text, *, is_first: bool, is_last: bool, bare: bool) -> tuple[int, int]:
    """What is seen of a text in a chain. Before the first piece stand words of context."""
    first, behind = (text.first, text.behind) if bare else (0, len(text.text))
    return (
        max(0, behind - WINDOW_CHARACTERS) if is_first else first,
        min(len(text.text), first + WINDOW_CHARACTERS) if is_last else behind,
    )
