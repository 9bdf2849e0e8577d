"""Invisible text that a model reads: invisible characters that encode others.

tags        U+E0020 to U+E007E, each for an ASCII character
selectors   variation selectors, each for a byte
bits        a run of zero-width characters: two of them for the bits of ASCII text, a third one between letters, or four
of them for two bits each

Ordinary uses hide no text: flags of regions (England's is a black flag and five tags), a single selector after an emoji
or an ideograph, joiners in emoji and scripts, padding. All encodings are local, except bits in a run of unbounded
length without a visible character.
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
#: Tags between the flag and its end tag.
_MAX_FLAG_TAGS: Final = 5
#: Minimum characters of a hidden text.
_MIN_CHARACTERS: Final = 4
#: Minimum bits: four letters of seven bits.
_MIN_BITS: Final = 28
#: Characters of a carrier that show whether it hides letters.
_PREFIX_CHARACTERS: Final = 512
#: Maximum period of zero-width characters that are padding.
_MAX_PADDING_PERIOD_CHARACTERS: Final = 8

_CARRIERS: Final = re.compile(
    rf"{_FLAG}|(?P<tags>[{_TAG}]+)|[\ufe0e\ufe0f]?(?P<selectors>[{_SELECTOR}]{{{_MIN_CHARACTERS},}})"
    rf"|(?P<bits>[{_ZERO_WIDTH}]{{{_MIN_BITS},}})"
)
_ANY: Final = re2.compile(rf"[{_TAG}]|[{_SELECTOR}]{{{_MIN_CHARACTERS}}}|[{_ZERO_WIDTH}]{{{_MIN_BITS}}}")

#: Hidden characters: start, end and character of each.
_Carried = list[Piece]


class Hidden(NamedTuple):
    """A view with hidden text in its place, and the indexes of its hidden characters."""

    view: View
    carried: list[int]


def hidden_view(text: str, *, json_escapes: bool = False) -> Hidden | None:
    """Return a view with the hidden text, or None if there is none. `json_escapes`: `text` is raw JSON."""
    source = unescaped(text) if json_escapes and "\\u" in text else None
    if source is not None:
        text = source.text
    if not _may_carry(text):
        return None
    pieces = [piece for match in _CARRIERS.finditer(text) for piece in _separated(_decoded(match), text)]
    if not pieces:
        return None
    revealed = spliced(text, pieces)
    view = character_view(revealed.text).over(revealed)
    assert view.starts is not None
    first = sorted(set(view.starts.searchsorted([start for start, _, _ in pieces]).tolist()))
    return Hidden(view if source is None else view.over(source), first)


def carried_texts(text: str) -> Iterator[str]:
    """Yield the hidden text of each carrier, or its beginning if it is long. Single tags are included, because tags
    hide text also with visible characters between them."""
    if not _may_carry(text):
        return
    for match in _CARRIERS.finditer(text):
        if match.lastgroup == "tags":
            flag_begun = text[match.start() - 1 : match.start()] == _BLACK_FLAG and len(match["tags"]) <= _MAX_FLAG_TAGS
            yield "" if flag_begun else "".join(chr(ord(tag) - _TAGS) for tag in match["tags"][:_PREFIX_CHARACTERS])
        else:
            yield "".join(character for _, _, character in _decoded(match, _PREFIX_CHARACTERS))


def _may_carry(text: str) -> bool:
    # RE2 reads UTF-8, which has no lone surrogates.
    return not text.isascii() and _ANY.search(text.encode(errors="replace").decode()) is not None


def _is_padding(run: str) -> bool:
    return any(run[period:] == run[:-period] for period in range(1, _MAX_PADDING_PERIOD_CHARACTERS + 1))


def _decoded(match: re.Match[str], max_length: int | None = None) -> _Carried:
    if match.lastgroup is None:
        return []
    start = match.start(match.lastgroup)
    run = match[match.lastgroup][:max_length]
    if match.lastgroup == "tags":
        # Fewer tags are ignored, so that they do not interrupt a visible number.
        enough = run if len(run) >= _MIN_CHARACTERS else ""
        return [(place, place + 1, chr(ord(tag) - _TAGS)) for place, tag in enumerate(enough, start)]
    if match.lastgroup == "selectors":
        return _of_bytes(run, start)
    return [] if _is_padding(run) else _of_bits(run, start)


def _of_bytes(run: str, start: int) -> _Carried:
    data = bytes(ord(selector) - 0xFE00 if selector <= "\ufe0f" else ord(selector) - 0xE0100 + 16 for selector in run)
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
                    (start + match.start(), start + match.end(), chr(int(match[0], 2)))
                    for match in re.finditer(r"[01]{1,8}", digits)
                ]
                if _is_text(carried):
                    return carried
    return []


def _of_digits(digits: str, base: int, width: int, start: int) -> _Carried:
    carried: _Carried = []
    for place in range(0, len(digits) - width + 1, width):
        carried.append((start + place, start + place + width, chr(int(digits[place : place + width], base))))
        # Most orders and widths give no text.
        if len(carried) == _MIN_CHARACTERS and not _is_text(carried):
            return []
    return carried if _is_text(carried) else []


def _is_text(carried: _Carried) -> bool:
    printable = sum(character.isprintable() or character in "\t\r\n" for _, _, character in carried)
    return len(carried) >= _MIN_CHARACTERS and 10 * printable >= 9 * len(carried)


def _separated(carried: _Carried, text: str) -> Iterator[Piece]:
    """Yield the hidden characters, with a blank where they would touch a visible word."""
    if not carried:
        return
    first, last = carried[0][0], carried[-1][1]
    for start, end, character in carried:
        before = " " if start == first and character.isalnum() and text[start - 1 : start].isalnum() else ""
        after = " " if end == last and character.isalnum() and text[end : end + 1].isalnum() else ""
        yield start, end, f"{before}{character}{after}"
