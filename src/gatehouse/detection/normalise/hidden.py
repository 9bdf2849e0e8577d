"""Text that nobody sees and a model reads: characters that are not drawn, and carry others.

tags        U+E0020 to U+E007E, each for an ASCII character
selectors   variation selectors, each for a byte
bits        a run of zero-width characters: two of them for the bits of ASCII text, a third one between letters, or four
            of them for two bits each

What is ordinary carries nothing: flags of regions (England's is a black flag and five tags), the one selector behind an
emoji or an ideograph, joiners in emoji and scripts, padding. All is local, but for bits in a run of a length without
bound, which no visible character interrupts.
"""

import re
from collections.abc import Iterator
from itertools import permutations
from typing import Final, NamedTuple

import re2

from gatehouse.detection.normalise.characters import character_view
from gatehouse.detection.normalise.escapes import unescaped
from gatehouse.detection.normalise.view import Piece, View, spliced

_TAGS: Final = 0xE0000
_TAG: Final = "\U000e0020-\U000e007e"
_SELECTOR: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_ZERO_WIDTH: Final = "\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
_BLACK_FLAG: Final = "\U0001f3f4"
_FLAG: Final = f"{_BLACK_FLAG}[\U000e0061-\U000e007a]{{2}}[\U000e0030-\U000e0039\U000e0061-\U000e007a]{{1,3}}\U000e007f"
#: Tags between the flag and the one that ends it.
_LONGEST_FLAG: Final = 5
#: Characters of a text at least.
_FEWEST: Final = 4
#: Four letters of seven bits.
_FEWEST_BITS: Final = 28
#: Of a carrier, characters that are enough to tell whether it hides letters.
_BEGINNING: Final = 512
#: Zero-width characters that repeat after so many are padding.
_LONGEST_PERIOD: Final = 8

_CARRIERS: Final = re.compile(
    rf"{_FLAG}|(?P<tags>[{_TAG}]+)|[\ufe0e\ufe0f]?(?P<selectors>[{_SELECTOR}]{{{_FEWEST},}})"
    rf"|(?P<bits>[{_ZERO_WIDTH}]{{{_FEWEST_BITS},}})"
)
_ANY: Final = re2.compile(rf"[{_TAG}]|[{_SELECTOR}]{{{_FEWEST}}}|[{_ZERO_WIDTH}]{{{_FEWEST_BITS}}}")

#: What is carried: from where to where each character is, and the character.
_Carried = list[Piece]


class Hidden(NamedTuple):
    """A view with what is carried in its place, and its characters that are."""

    view: View
    carried: list[int]


def hidden_view(text: str, *, json_escapes: bool = False) -> Hidden | None:
    """None where nothing that is read as text is carried. `json_escapes`: `text` is JSON as written."""
    source = unescaped(text) if json_escapes and "\\u" in text else None
    if source is not None:
        text = source.text
    if not _may_carry(text):
        return None
    pieces = [piece for found in _CARRIERS.finditer(text) for piece in _apart(_read(found), text)]
    if not pieces:
        return None
    written = spliced(text, pieces)
    view = character_view(written.text).over(written)
    assert view.starts is not None
    first = sorted(set(view.starts.searchsorted([start for start, _, _ in pieces]).tolist()))
    return Hidden(view if source is None else view.over(source), first)


def carried_texts(text: str) -> Iterator[str]:
    """What is carried, a carrier at a time; of a long one the beginning. Fewer tags than make a text are told, too: a
    visible character between any two of them hides as much."""
    if not _may_carry(text):
        return
    for found in _CARRIERS.finditer(text):
        if found.lastgroup == "tags":
            flag_begun = text[found.start() - 1 : found.start()] == _BLACK_FLAG and len(found["tags"]) <= _LONGEST_FLAG
            yield "" if flag_begun else "".join(chr(ord(tag) - _TAGS) for tag in found["tags"][:_BEGINNING])
        else:
            yield "".join(character for _, _, character in _read(found, _BEGINNING))


def _may_carry(text: str) -> bool:
    # RE2 reads UTF-8, which has no halves of surrogate pairs.
    return not text.isascii() and _ANY.search(text.encode(errors="replace").decode()) is not None


def _is_padding(run: str) -> bool:
    return any(run[period:] == run[:-period] for period in range(1, _LONGEST_PERIOD + 1))


def _read(found: re.Match[str], longest: int | None = None) -> _Carried:
    if found.lastgroup is None:
        return []
    start = found.start(found.lastgroup)
    run = found[found.lastgroup][:longest]
    if found.lastgroup == "tags":
        # Fewer are noise in a visible number.
        enough = run if len(run) >= _FEWEST else ""
        return [(place, place + 1, chr(ord(tag) - _TAGS)) for place, tag in enumerate(enough, start)]
    if found.lastgroup == "selectors":
        return _of_bytes(run, start)
    return [] if _is_padding(run) else _of_bits(run, start)


def _of_bytes(run: str, start: int) -> _Carried:
    data = bytes(ord(each) - 0xFE00 if each <= "\ufe0f" else ord(each) - 0xE0100 + 16 for each in run)
    carried: _Carried = []
    for character in data.decode("utf-8", "surrogateescape"):
        width = len(character.encode("utf-8", "surrogateescape"))
        carried.append((start, start + width, character))
        start += width
    return carried if _is_text(carried) else []


def _of_bits(run: str, start: int) -> _Carried:
    symbols = sorted(set(run))
    if len(symbols) in {2, 4}:
        for order in permutations(symbols):
            digits = run.translate({ord(symbol): str(digit) for digit, symbol in enumerate(order)})
            for width in (8, 7) if len(symbols) == 2 else (4,):
                carried = _of_digits(digits, len(symbols), width, start)
                if carried:
                    return carried
    elif len(symbols) == 3:
        for between in symbols:
            for zero, one in permutations(symbol for symbol in symbols if symbol != between):
                digits = run.translate({ord(zero): "0", ord(one): "1", ord(between): " "})
                carried = [
                    (start + found.start(), start + found.end(), chr(int(found[0], 2)))
                    for found in re.finditer(r"[01]{1,8}", digits)
                ]
                if _is_text(carried):
                    return carried
    return []


def _of_digits(digits: str, base: int, width: int, start: int) -> _Carried:
    carried: _Carried = []
    for place in range(0, len(digits) - width + 1, width):
        carried.append((start + place, start + place + width, chr(int(digits[place : place + width], base))))
        # Most orders and widths give no text at all.
        if len(carried) == _FEWEST and not _is_text(carried):
            return []
    return carried if _is_text(carried) else []


def _is_text(carried: _Carried) -> bool:
    printable = sum(character.isprintable() or character in "\t\r\n" for _, _, character in carried)
    return len(carried) >= _FEWEST and 10 * printable >= 9 * len(carried)


def _apart(carried: _Carried, text: str) -> Iterator[Piece]:
    """What is carried, as words of its own beside visible ones."""
    if not carried:
        return
    first, last = carried[0][0], carried[-1][1]
    for start, end, character in carried:
        before = " " if start == first and character.isalnum() and text[start - 1 : start].isalnum() else ""
        behind = " " if end == last and character.isalnum() and text[end : end + 1].isalnum() else ""
        yield start, end, f"{before}{character}{behind}"
