"""Decodes encoded characters: HTML entities, `%XX` in URLs, and `=XX` in quoted-printable text."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

from gatehouse.detection.normalise.view import Piece

PLACES: Final = (
    r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    r"|(?:%[0-9A-Fa-f]{2})+"
)
_PLACE: Final = re.compile(PLACES)
#: Forms that occur only in quoted-printable text. A single `x=20` and a line that ends with `=` are not included,
#: because they occur in source code.
QUOTES: Final = (
    r"=[0-9A-F]{2}=[0-9A-F]{2}|=3D|=40[0-9A-Za-z-]{1,63}\.[A-Za-z]{2}"
    r"|=2[0DEF][0-9A-Za-z]{2,6}=2[0DEF][0-9A-Za-z]"
    r"|=[ \t]{0,8}\r?\n(?:[0-9A-Za-z ._-]{0,3}[0-9]|[0-9A-Za-z._-]{0,63}@|[0-9A-Z]{4,40}(?:[^0-9A-Z_=]|$))"
    r"|@[0-9A-Za-z.-]{0,63}=[ \t]{0,8}\r?\n[0-9A-Za-z.-]"
)
_QUOTED: Final = re.compile(r"(?:=[0-9A-Fa-f]{2}|=[ \t]{0,8}\r?\n)+")
_QUOTED_BYTE: Final = re.compile(r"=(?:([0-9A-Fa-f]{2})|[ \t]*\r?\n)")


def entities(text: str) -> Iterator[Piece]:
    """Yield the decoded character of each HTML entity and each `%XX`."""
    for match in _PLACE.finditer(text):
        start, end = match.span()
        encoded = match[0]
        if encoded[0] == "%":
            yield from _percent(start, encoded)
        else:
            character = unescape(encoded)
            if len(character) <= 2:
                yield start, end, character


def _percent(start: int, encoded: str) -> Iterator[Piece]:
    data = bytes.fromhex(encoded.replace("%", ""))
    return _of_bytes(data, list(range(start, start + len(encoded) + 1, 3)))


def _of_bytes(data: bytes, places: list[int]) -> Iterator[Piece]:
    """Yield the characters of `data`. Byte `i` of `data` is encoded from `places[i]` to `places[i + 1]` of the text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    first = 0
    for character in text:
        last = first + (len(character.encode()) if len(text) < len(data) else 1)
        yield places[first], places[last], character
        first = last


def quoted(text: str) -> Iterator[Piece]:
    """Yield the decoded character of each `=XX`, and remove soft line breaks."""
    for match in _QUOTED.finditer(text):
        start, end = match.span()
        signs = [sign for sign in _QUOTED_BYTE.finditer(text, start, end) if sign[1]]
        begin = signs[0].start() if signs else end
        if begin > start:
            # A soft line break is removed. The character before it represents both itself and the line break.
            yield max(0, start - 1), begin, text[max(0, start - 1) : start]
        yield from _of_bytes(bytes.fromhex("".join(sign[1] for sign in signs)), [*(s.start() for s in signs), end])
