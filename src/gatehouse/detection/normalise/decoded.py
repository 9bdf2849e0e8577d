"""What is written in another encoding: HTML entities, URL encoding, backslash escapes, hex, one level of base64.

A decoded character stands for its own entity or `%XX`; one out of hex or base64 for all of the encoded segment, or for
its own place in a long one.
"""

import binascii
import re
from collections.abc import Iterator
from html import unescape
from typing import Any, Final

import numpy as np
import re2

from gatehouse.detection.normalise.characters import character_view
from gatehouse.detection.normalise.view import Piece, View, spliced

#: Shorter segments are not tried: eight digits in base64.
_SHORTEST: Final = 11
#: Of a segment no longer than this all is the finding; in a longer one, which may be a file, only its place.
_WHOLE: Final = 512
#: What a segment of hex or base64 is made of.
ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"

_PLACES: Final = (
    r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    r"|(?:%[0-9A-Fa-f]{2})+|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}"
)
_PLACE: Final = re.compile(_PLACES)
_ANYWHERE: Final = re2._re2.RE2.Anchor.UNANCHORED


def _quick(regex: str) -> Any:
    """RE2's search for the whole of a match."""
    options = re2.Options()
    options.never_capture = True
    return re2.compile(regex, options)._regexp.Match


_ANY_PLACE: Final = _quick(_PLACES)

_PRINTABLE: Final = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_BASE64_DIGITS: Final = ALPHABET[:64]
_URL_SAFE: Final = str.maketrans("-_", "+/")


def _group() -> str:
    """Three printable ASCII bytes as four digits of base64: little else looks like several of them in a row."""
    high = {byte >> 4 for byte in _PRINTABLE}
    places = (
        {byte >> 2 for byte in _PRINTABLE},
        {(low << 4) | half for low in range(4) for half in high},
        {(half << 2) | top for half in range(16) for top in (0, 1)},
        set(range(64)),
    )
    digits = ("".join(_BASE64_DIGITS[digit] for digit in sorted(place)) for place in places)
    return "".join(f"[{place}{'_-' if '/' in place else ''}]" for place in digits)


#: Where a segment can begin: two groups of base64, or eight bytes of hex, that are printable ASCII. More of it follows,
#: or what is not drawn.
_SEGMENT: Final = _quick(
    rf"(?:^|[^A-Za-z0-9+])(?:(?:0[xX])?(?:[2-7][0-9a-fA-F]|0[9aAdD]){{8}}"
    rf"|(?:{_group()}){{2}}(?:[A-Za-z0-9+/_=-]{{3}}|[A-Za-z0-9+/_=-]{{0,2}}[^\x00-\x7f]))"
)
_GROUPS: Final = 8
_WRITTEN: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_HEX: Final = re.compile(r"(?:0[xX])?((?:[0-9a-fA-F]{2})+)")
#: Behind a segment a path or a name with dashes may go on.
_GOES_ON: Final = re.compile(r"[/_-]")


def candidates(text: str) -> list[tuple[int, int]]:
    """Where something in `text` looks encoded, from one code point to another: in most texts nowhere. What is not drawn
    may stand in a segment, and some of its signs may be encoded once more."""
    view = View(text)
    data = view.data
    found: list[tuple[int, int]] = []
    if b"&" in data or b"%" in data or b"\\" in data:
        place = 0
        while (span := _ANY_PLACE(_ANYWHERE, data, place, len(data))[0])[0] >= 0:
            found.append((view.character(span[0]), view.character(span[1])))
            place = span[1]
    for start, written, plain in _segments(view):
        end = start + len(written)
        if plain is not None or (end < len(text) and (text[end] in "&%\\" or not text[end].isascii())):
            found.append((start, end))
    return sorted(found)


def decoded_view(view: View) -> View | None:
    """`view` with all that is encoded in it decoded; None where nothing is."""
    text = view.text
    placed = _ANY_PLACE(_ANYWHERE, view.data, 0, len(view.data))[0][0] >= 0
    if placed:
        view = _decoded(view, _places(text))
    segments = [(start, segment, plain) for start, segment, plain in _segments(view) if plain is not None]
    if segments:
        # One level: what was decoded is not decoded again.
        done = set(encoded(view))
        pieces = [piece for found in segments if found[0] not in done for piece in _placed(*found)]
        view = _decoded(view, iter(pieces))
    return view if placed or segments else None


def encoded(view: View) -> list[int]:
    """Which characters of a decoded view were encoded, in order."""
    if view.starts is None or view.ends is None:
        return []
    indices: list[int] = np.flatnonzero(view.ends - view.starts > 1).tolist()
    return indices


def _decoded(view: View, pieces: Iterator[Piece]) -> View:
    spelled = spliced(view.text, pieces)
    return (spelled if spelled.text.isascii() else character_view(spelled.text).over(spelled)).over(view)


def _places(text: str) -> Iterator[Piece]:
    for found in _PLACE.finditer(text):
        start, end = found.span()
        written = found[0]
        if written[0] == "%":
            yield from _percent(start, written)
        elif written[0] == "&":
            character = unescape(written)
            if len(character) <= 2:
                yield start, end, character
        else:
            yield start, end, chr(int(f"0x{written[2:]}", base=16))


def _percent(start: int, written: str) -> Iterator[Piece]:
    data = bytes.fromhex(written.replace("%", ""))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    for character in text:
        width = 3 * (len(character.encode()) if len(text) < len(data) else 1)
        yield start, start + width, character
        start += width


def _segments(view: View) -> Iterator[tuple[int, str, str | None]]:
    """Where a segment begins, as far as it goes, and what it encodes, if it does."""
    data, place = view.data, 0
    while (span := _SEGMENT(_ANYWHERE, data, place, len(data))[0])[0] >= 0:
        # A match has the character before the segment, too, but for one at the very beginning.
        start = view.character(span[0])
        if start or not (view.text[0].isascii() and view.text[0].isalnum()):
            start += 1
        place = view.byte(start + _GROUPS)
        written = _WRITTEN.match(view.text, start)
        assert written is not None
        whole = written[0]
        for segment in (whole, _GOES_ON.split(whole, maxsplit=1)[0]):
            if len(segment) >= _SHORTEST and (plain := _hex(segment) or _base64(segment)) is not None:
                yield start, segment, plain
                place = view.byte(start + len(segment))
                break
        else:
            yield start, whole, None


def _placed(start: int, segment: str, plain: str) -> Iterator[Piece]:
    if len(segment) <= _WHOLE or len(plain) != len(segment.rstrip("=")) * 3 // 4:
        yield start, start + len(segment), plain
        return
    for group in range(0, len(plain), 3):
        begin = start + group // 3 * 4
        yield begin, min(begin + 4, start + len(segment)), plain[group : group + 3]


def _hex(segment: str) -> str | None:
    digits = _HEX.fullmatch(segment)
    return None if digits is None else _text(bytes.fromhex(digits[1]))


def _base64(segment: str) -> str | None:
    bare = segment.rstrip("=").translate(_URL_SAFE)
    if len(bare) % 4 == 1:
        return None
    return _text(binascii.a2b_base64(bare + "=" * (-len(bare) % 4)))


def _text(data: bytes) -> str | None:
    """Only what is mostly printable: anything else was not text before it was encoded."""
    if not data.translate(None, _PRINTABLE):
        return data.decode()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if 10 * sum(map(str.isprintable, text)) >= 9 * len(text) else None
