"""Decodes hidden text: text that is encoded in invisible characters, which a model may be able to read.

tags        U+E0020 to U+E007E; each represents an ASCII character
selectors   variation selectors; each represents a byte
bits        a run of zero-width characters that represents bits of ASCII text: two different characters for 0 and 1,
            a third one as separator between letters, or four characters for two bits each

Ordinary uses of these characters hide no text: flags of regions (England's flag is a black flag with five tags), a
single selector after an emoji or ideograph, joiners in emoji and in some scripts, and padding. A hidden character
depends only on a bounded number of neighbours, except for bits, whose run may have any length.
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
#: Maximum number of tags between a flag and its end tag.
_MAX_FLAG_TAGS: Final = 5
#: Minimum characters of a hidden text.
_MIN_CHARACTERS: Final = 4
#: Minimum bits: four letters of seven bits.
_MIN_BITS: Final = 28
#: Number of invisible characters of a run that are examined to decide whether it hides letters.
_PREFIX_CHARACTERS: Final = 512
#: Maximum period of a repeating run of zero-width characters that is treated as padding.
_MAX_PADDING_PERIOD_CHARACTERS: Final = 8

_HIDDEN: Final = re.compile(
    rf"{_FLAG}|(?P<tags>[{_TAG}]+)|[\ufe0e\ufe0f]?(?P<selectors>[{_SELECTOR}]{{{_MIN_CHARACTERS},}})"
    rf"|(?P<bits>[{_ZERO_WIDTH}]{{{_MIN_BITS},}})"
)
_ANY: Final = re2.compile(rf"[{_TAG}]|[{_SELECTOR}]{{{_MIN_CHARACTERS}}}|[{_ZERO_WIDTH}]{{{_MIN_BITS}}}")

#: Hidden characters. Each has the start and end of the invisible characters that encode it, and the character.
_HiddenCharacters = list[Piece]


class Hidden(NamedTuple):
    """A view with the hidden text instead of the invisible characters, and the positions of its hidden characters."""

    view: View
    positions: list[int]


def hidden_view(text: str, *, json_escapes: bool = False) -> Hidden | None:
    """Return a view with the hidden text, or None if there is none. `json_escapes` means that `text` is raw JSON."""
    source = unescaped(text) if json_escapes and "\\u" in text else None
    if source is not None:
        text = source.text
    if not _may_hide_text(text):
        return None
    pieces = [piece for match in _HIDDEN.finditer(text) for piece in _separated(_decoded(match), text)]
    if not pieces:
        return None
    revealed = spliced(text, pieces)
    view = character_view(revealed.text).over(revealed)
    assert view.starts is not None
    first = sorted(set(view.starts.searchsorted([start for start, _, _ in pieces]).tolist()))
    return Hidden(view if source is None else view.over(source), first)


def hidden_texts(text: str) -> Iterator[str]:
    """Yield the hidden text of each run of invisible characters, or the beginning of a long one. Single tags are
    included, because tags hide text even if there are visible characters between them."""
    if not _may_hide_text(text):
        return
    for match in _HIDDEN.finditer(text):
        if match.lastgroup == "tags":
            flag_begun = text[match.start() - 1 : match.start()] == _BLACK_FLAG and len(match["tags"]) <= _MAX_FLAG_TAGS
            yield "" if flag_begun else "".join(chr(ord(tag) - _TAGS) for tag in match["tags"][:_PREFIX_CHARACTERS])
        else:
            yield "".join(character for _, _, character in _decoded(match, _PREFIX_CHARACTERS))


def _may_hide_text(text: str) -> bool:
    # RE2 reads UTF-8, which cannot encode lone surrogates.
    return not text.isascii() and _ANY.search(text.encode(errors="replace").decode()) is not None


def _is_padding(run: str) -> bool:
    return any(run[period:] == run[:-period] for period in range(1, _MAX_PADDING_PERIOD_CHARACTERS + 1))


def _decoded(match: re.Match[str], max_length: int | None = None) -> _HiddenCharacters:
    if match.lastgroup is None:
        return []
    start = match.start(match.lastgroup)
    run = match[match.lastgroup][:max_length]
    if match.lastgroup == "tags":
        # Shorter runs of tags are ignored, so that they do not interrupt a visible number.
        enough = run if len(run) >= _MIN_CHARACTERS else ""
        return [(place, place + 1, chr(ord(tag) - _TAGS)) for place, tag in enumerate(enough, start)]
    if match.lastgroup == "selectors":
        return _of_bytes(run, start)
    return [] if _is_padding(run) else _of_bits(run, start)


def _of_bytes(run: str, start: int) -> _HiddenCharacters:
    data = bytes(ord(selector) - 0xFE00 if selector <= "\ufe0f" else ord(selector) - 0xE0100 + 16 for selector in run)
    characters: _HiddenCharacters = []
    for character in data.decode("utf-8", "surrogateescape"):
        width = len(character.encode("utf-8", "surrogateescape"))
        characters.append((start, start + width, character))
        start += width
    return characters if _is_text(characters) else []


def _of_bits(run: str, start: int) -> _HiddenCharacters:
    symbols = sorted(set(run))
    if len(symbols) in {2, 4}:
        for order in permutations(symbols):
            digits = run.translate({ord(symbol): str(digit) for digit, symbol in enumerate(order)})
            for width in (8, 7) if len(symbols) == 2 else (4,):
                characters = _of_digits(digits, len(symbols), width, start)
                if characters:
                    return characters
    elif len(symbols) == 3:
        for between in symbols:
            for zero, one in permutations(symbol for symbol in symbols if symbol != between):
                digits = run.translate({ord(zero): "0", ord(one): "1", ord(between): " "})
                characters = [
                    (start + match.start(), start + match.end(), chr(int(match[0], 2)))
                    for match in re.finditer(r"[01]{1,8}", digits)
                ]
                if _is_text(characters):
                    return characters
    return []


def _of_digits(digits: str, base: int, width: int, start: int) -> _HiddenCharacters:
    characters: _HiddenCharacters = []
    for place in range(0, len(digits) - width + 1, width):
        characters.append((start + place, start + place + width, chr(int(digits[place : place + width], base))))
        # The first characters show that most orders of the symbols and most widths give no text.
        if len(characters) == _MIN_CHARACTERS and not _is_text(characters):
            return []
    return characters if _is_text(characters) else []


def _is_text(characters: _HiddenCharacters) -> bool:
    printable = sum(character.isprintable() or character in "\t\r\n" for _, _, character in characters)
    return len(characters) >= _MIN_CHARACTERS and 10 * printable >= 9 * len(characters)


def _separated(characters: _HiddenCharacters, text: str) -> Iterator[Piece]:
    """Yield the hidden characters. A blank is added where they would be next to a letter or digit of the visible
    text."""
    if not characters:
        return
    first, last = characters[0][0], characters[-1][1]
    for start, end, character in characters:
        before = " " if start == first and character.isalnum() and text[start - 1 : start].isalnum() else ""
        after = " " if end == last and character.isalnum() and text[end : end + 1].isalnum() else ""
        yield start, end, f"{before}{character}{after}"
