"""Builds chains of consecutive texts that may contain one split value, because their ends resemble pieces of a value.

A chain is searched as one text, which consists of the joined ends of its texts (`join_ends`).
"""

import re
import string
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection.pattern import NEAR_CHARACTERS
from gatehouse.detection.regex.byte_search import ANYWHERE, search_of
from gatehouse.detection.search.as_written import Part
from gatehouse.detection.separator import SEPARATOR
from gatehouse.engine.conversation.following import Place
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.steps import Steps

#: Characters that are searched on each side of a seam, the border between two texts.
WINDOW_CHARACTERS: Final = NEAR_CHARACTERS
#: Characters on each side of a seam that are checked to see whether a value may cross it.
_NEAR_SEAM_CHARACTERS: Final = 40
#: Minimum number of digits that a number must have near a seam to cross it.
MIN_NUMBER_DIGITS: Final = 8
#: Minimum length in characters of a token of letters and digits.
_MIN_TOKEN_CHARACTERS: Final = 16
#: Number of texts that are checked in one step.
TEXTS_PER_STEP: Final = 256

#: Maximum number of texts of a chain. The last texts of a full chain also begin the next chain, so no value is missed:
#: a value has no more pieces than characters.
_MAX_CHAIN_TEXTS: Final = 8 * WINDOW_CHARACTERS


def _regex(regex: str) -> Callable[[str], bool]:
    """Return a function that tells whether the regex matches anywhere in a text."""
    search = search_of(re2.compile(regex))

    def matches(text: str) -> bool:
        data = text.encode(errors="replace")
        return search(ANYWHERE, data, 0, len(data))[0][0] >= 0

    return matches


#: Keys under which the dialects store the texts of a conversation.
_CONVERSATION_KEYS: Final = frozenset({"content", "text", "system", "instructions"})
_NO_DIGIT: Final = bytes(set(range(128)) - set(b"0123456789"))
_DIGIT: Final = re.compile(r"\d")
#: Separates the ends of different texts in the joined string whose characters are checked.
_SEAM: Final = "\x1d"
#: Separates the beginning and the end of the same text in that string.
_WITHIN: Final = "\x1e"
_DECIMALS: Final = "".join(filter(str.isdecimal, map(chr, range(sys.maxunicode + 1))))
_INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
#: Characters that occur in numbers written in groups.
_GROUP_CHARACTERS: Final = _DECIMALS + string.ascii_uppercase + " -./\u00a0\u2009\u2010\u2011\u202f" + _INVISIBLE
#: Matches a text that is one piece of a value: groups of digits and capitals, or one token.
_PIECE: Final = re.compile(r"[0-9A-Z]{1,19}(?:[ -][0-9A-Z]{1,19})*|\S*")

#: Characters that surround a piece and are not part of it: white space, quotes, brackets, dashes and similar marks.
_SURROUNDING_MARKS: Final = (
    "".join(filter(str.isspace, map(chr, range(0x3001))))
    + "\"'`\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u2026.,;:()[]*-\u2013\u2014"
)
#: Words that announce another piece, in four languages.
_ANNOUNCING_WORDS: Final = frozenset(
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
_MARK: Final = f"[{re.escape(_SURROUNDING_MARKS)}]"
_NUMBERED_PART: Final = "(?:part|piece|half|teil|partie|parte) ?[1-9]"
#: Matches announcements at the beginning of a text. The next regex matches them anywhere between two pieces.
_ANNOUNCEMENT: Final = re.compile(
    rf"{_MARK}*(?:(?:{_NUMBERED_PART}|{'|'.join(_ANNOUNCING_WORDS)}){_MARK}+){{0,8}}", re.IGNORECASE
)
_BETWEEN: Final = rf"(?:[^\pL\p{{Nd}}{_SEAM}{_WITHIN}]|(?i:{_NUMBERED_PART}|{'|'.join(sorted(_ANNOUNCING_WORDS))}))*"
#: Matches character sequences that occur in tokens and not in words.
_TOKEN_MARK: Final = rf"(?:\pL{_SEAM}*\p{{Nd}}|\p{{Nd}}{_SEAM}*\pL|[a-z][A-Z]|[A-Z]{{8}}|_)"
_has_token_mark: Final = _regex(_TOKEN_MARK)
#: Matches digits or groups of capitals at the end of a text. The next regex matches those at the beginning.
_NUMBER_END: Final = r"(?:\p{Nd}(?: ?[A-Z]{1,6})?|\b[A-Z]{1,6})"
_NUMBER_START: Final = rf"(?:\p{{Nd}}|[A-Z]{{1,6}}(?:[ -]?\p{{Nd}}|{_SEAM}|\z))"
#: Whether a number or a token reaches a seam, apart from announcements.
_crosses_seam: Final = _regex(
    rf"{_NUMBER_END}{_BETWEEN}{_SEAM}{_BETWEEN}{_NUMBER_START}"
    rf"|{_TOKEN_MARK}[^\s{_WITHIN}]*{_BETWEEN}{_SEAM}|{_SEAM}{_BETWEEN}[^\s{_WITHIN}]*{_TOKEN_MARK}"
)
#: Length in characters of the longest announcing word with a mark.
_MAX_WORD_CHARACTERS: Final = 16


class _ChainText(NamedTuple):
    """A text of a chain. `number` is its index among all texts. Only the range from `start` to `end` can contain a
    piece of a value. `is_piece` is True if that whole range may be one piece."""

    number: int
    text: str
    start: int
    end: int
    is_piece: bool

    def before_seam(self, length: int) -> str:
        return self.text[max(self.start, self.end - length) : self.end]

    def after_seam(self, length: int) -> str:
        return self.text[self.start : min(self.end, self.start + length)]


#: Consecutive texts that may each contain a piece of one value: the end of the first text, the whole texts between, and
#: the beginning of the last.
Chain: TypeAlias = list[_ChainText]


class TextWindow(NamedTuple):
    """The range from `start` to `end` of the text `number`, and the position of this range in the joined text."""

    number: int
    start: int
    end: int
    joined_start: int


#: The number of the text that contains a piece, and the piece's start and end in that text.
Piece: TypeAlias = tuple[int, int, int]


class JoinedEnds(NamedTuple):
    """The joined ends of texts. `chains` are the start and end of each chain. Before `unchanged_end` the ends are
    joined unchanged; after it they are joined without announcements, or with a space between the pieces."""

    text: str
    windows: list[TextWindow]
    chains: list[Part]
    unchanged_end: int

    @property
    def unchanged_chains(self) -> list[Part]:
        return [part for part in self.chains if part[1] <= self.unchanged_end]

    def pieces(self, start: int, end: int) -> list[Piece]:
        """Return the pieces of texts that the range from `start` to `end` of the joined text consists of."""
        index = bisect_right(self.windows, start, key=_joined_start) - 1
        pieces = []
        for window in self.windows[index : bisect_left(self.windows, end, key=_joined_start)]:
            first = max(window.start, window.start + start - window.joined_start)
            last = min(window.end, window.start + end - window.joined_start)
            if first < last:
                pieces.append((window.number, first, last))
        return pieces


def _joined_start(window: TextWindow) -> int:
    return window.joined_start


def may_be_split(texts: Sequence[Slot]) -> Steps[bool]:
    """Return whether the ends of the texts could be pieces of a split value. For most requests the result is False."""
    ends: list[str] = []
    for index, slot in enumerate(texts):
        if index % TEXTS_PER_STEP == TEXTS_PER_STEP - 1:
            yield
        if slot.key in _CONVERSATION_KEYS:
            ends.append(_ends_of(slot.text))
    return len(ends) > 1 and _may_be_of_value(_SEAM.join(ends))


def build_chains(texts: Sequence[Slot], sequences: Iterable[Sequence[Place]]) -> Steps[list[Chain]]:
    """Return the chains that may contain a split value. `sequences` are the sequences of consecutive texts in
    the body."""
    likely: list[Sequence[Place]] = []
    for sequence in sequences:
        likely += yield from _likely_parts(sequence)
    if not likely:
        return []
    numbers = {(id(slot.holder), slot.key): number for number, slot in enumerate(texts) if _can_change(slot)}
    result: list[Chain] = []
    for places in likely:
        chain: Chain = []
        for holder, key in places:
            yield
            number = numbers.get((id(holder), key))
            if number is None:
                continue
            text = _chain_text(number, texts[number].text)
            chain.append(text)
            if not text.is_piece or len(chain) == _MAX_CHAIN_TEXTS:
                if _may_contain_value(chain):
                    result.append(chain)
                chain = chain[-WINDOW_CHARACTERS:] if text.is_piece else [text]
        if _may_contain_value(chain):
            result.append(chain)
    return result


def _likely_parts(sequence: Sequence[Place]) -> Steps[list[Sequence[Place]]]:
    """Return the parts of a sequence that may contain a split value. The check is fast and rough: it treats
    announcements as parts of a piece."""
    joined = _SEAM.join([_ends_of(holder[key]) for holder, key in sequence])
    if len(sequence) < 2 or not ("@" in joined or _crosses_seam(joined)):
        return []
    parts: list[Sequence[Place]] = []
    first = 0
    ends: list[str] = []
    for number, (holder, key) in enumerate(sequence):
        if number % TEXTS_PER_STEP == TEXTS_PER_STEP - 1:
            yield
        text = holder[key]
        # The text is one token, or groups of digits and capitals.
        if len(text) <= WINDOW_CHARACTERS and (
            " " not in text or (len(text) <= _NEAR_SEAM_CHARACTERS and text == text.upper())
        ):
            ends.append(text)
            continue
        if number:
            ends.append(text[:_NEAR_SEAM_CHARACTERS])
            if _may_cross_seam(_SEAM.join(ends)):
                parts.append(sequence[first : number + 1])
        first, ends = number, [text[-_NEAR_SEAM_CHARACTERS:]]
    if len(ends) > 1 and _may_cross_seam(_SEAM.join(ends)):
        parts.append(sequence[first:])
    return parts


def _ends_of(text: str) -> str:
    return (
        text
        if len(text) <= 2 * _NEAR_SEAM_CHARACTERS
        else f"{text[:_NEAR_SEAM_CHARACTERS]}{_WITHIN}{text[-_NEAR_SEAM_CHARACTERS:]}"
    )


def _may_cross_seam(near_seam: str) -> bool:
    return "@" in near_seam or (_crosses_seam(near_seam) and _may_be_of_value(near_seam))


def _may_be_of_value(near_seam: str) -> bool:
    return "@" in near_seam or _digits(near_seam) >= MIN_NUMBER_DIGITS or _has_token_mark(near_seam)


def _can_change(slot: Slot) -> bool:
    return not (slot.json_text or slot.is_key or slot.is_sealed or slot.is_extract or slot.attachment is not None)


def _chain_text(number: int, text: str) -> _ChainText:
    start = _piece_start(text)
    end = _piece_end(text, start)
    is_piece = end - start <= WINDOW_CHARACTERS and _PIECE.fullmatch(text, start, end) is not None
    return _ChainText(number, text, start, end, is_piece)


def _piece_start(text: str) -> int:
    """Return the first position of a piece in the text, which is after any announcement."""
    if not text or (text[0] not in _SURROUNDING_MARKS and _first_word(text) not in _ANNOUNCING_WORDS):
        return 0
    announcement = _ANNOUNCEMENT.match(text, 0, WINDOW_CHARACTERS)
    return announcement.end() if announcement is not None else 0


def _first_word(text: str) -> str:
    return text[:_MAX_WORD_CHARACTERS].split(maxsplit=1)[0].rstrip(_SURROUNDING_MARKS).lower()


def _piece_end(text: str, start: int) -> int:
    """Return the position where a piece at the end of the text ends, which is before any words that announce the next
    piece."""
    near = max(start, len(text) - WINDOW_CHARACTERS)
    end = near + len(text[near:].rstrip(_SURROUNDING_MARKS))
    while end > near:
        word = text[max(near, end - _MAX_WORD_CHARACTERS) : end].rsplit(maxsplit=1)[-1]
        if word.lower() not in _ANNOUNCING_WORDS:
            break
        end = near + len(text[near : end - len(word)].rstrip(_SURROUNDING_MARKS))
    return end


def _may_contain_value(chain: Chain) -> bool:
    if len(chain) < 2:
        return False
    before, *after = (
        chain[0].before_seam(_NEAR_SEAM_CHARACTERS),
        *(text.after_seam(_NEAR_SEAM_CHARACTERS) for text in chain[1:]),
    )
    # Only digits adjacent to the seam count, because a sentence contains other numbers too.
    groups = before[len(before.rstrip(_GROUP_CHARACTERS)) :] + "".join(
        text_start[: len(text_start) - len(text_start.lstrip(_GROUP_CHARACTERS))] for text_start in after
    )
    if _digits(groups) >= MIN_NUMBER_DIGITS:
        return True
    tokens = [*before.rsplit(None, 1)[-1:], *(word for text_start in after for word in text_start.split(None, 1)[:1])]
    joined = "".join(tokens)
    if "@" in joined:
        return True
    # In a chain of two texts, a number at the end of a sentence and the first word of the next sentence are not joined
    # to a token.
    return len(joined) >= _MIN_TOKEN_CHARACTERS and _has_token_mark(joined if len(chain) > 2 else " ".join(tokens))


def _digits(text: str) -> int:
    digits = text.encode(errors="replace").translate(None, _NO_DIGIT)
    return len(digits) if digits.isascii() else len(_DIGIT.findall(text))


def join_ends(chains: Sequence[Chain]) -> Steps[JoinedEnds]:
    """Join the ends of the texts of each chain in three ways: unchanged, without the announcements, and with spaces
    between the pieces."""
    texts: list[str] = [SEPARATOR]
    windows: list[TextWindow] = []
    parts: list[Part] = []
    end = unchanged_end = len(SEPARATOR)
    for without_announcements, between in ((False, ""), (True, ""), (True, " ")):
        for chain in chains:
            if without_announcements and not between and not _has_announcements(chain):
                continue
            chain_start = end
            for number, text in enumerate(chain):
                yield
                is_last = number == len(chain) - 1
                window = _window(
                    text, is_first=number == 0, is_last=is_last, without_announcements=without_announcements
                )
                after = SEPARATOR if is_last else between
                windows.append(TextWindow(text.number, *window, end))
                texts += (text.text[slice(*window)], after)
                end += window[1] - window[0] + len(after)
            parts.append((chain_start, end - len(SEPARATOR)))
        unchanged_end = unchanged_end if without_announcements else end
    return JoinedEnds("".join(texts), windows, parts, unchanged_end)


def _has_announcements(chain: Chain) -> bool:
    """Return whether words that announce another piece stand between the pieces of the chain."""
    return any(text.end < len(text.text) for text in chain[:-1]) or any(text.start for text in chain[1:])


def _window(text: _ChainText, *, is_first: bool, is_last: bool, without_announcements: bool) -> tuple[int, int]:
    """Return the range of a text that is searched as a part of a chain. Before the first piece, the range includes
    context words."""
    start, end = (text.start, text.end) if without_announcements else (0, len(text.text))
    return (
        max(0, end - WINDOW_CHARACTERS) if is_first else start,
        min(len(text.text), start + WINDOW_CHARACTERS) if is_last else end,
    )
