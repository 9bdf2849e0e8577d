# ruff: noqa: RUF001 - this page is about letters that look alike
"""Maps each Unicode code point to the code point that replaces it. The map is one table, for lookups with numpy.

A value of the table is a code point, or `DELETED` if the code point is removed. If the bit `LOOKALIKE` is set, the
other bits are the ASCII letter that the code point looks like. The module `characters` then decides by the neighbours
whether the code point is replaced."""

import unicodedata
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

CodePoints = npt.NDArray[np.uint32]

DELETED: Final = np.uint32(0xFFFFFFFF)
LOOKALIKE: Final = np.uint32(0x80000000)

_CYRILLIC: Final = dict(zip("АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝҮүѵӏӀ", "ABESIJKMHOPCTYXaesijopcyxhdqwYyvlI", strict=True))
_GREEK: Final = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹαονιρυϲκγ", "ABEZHIKMNOPTYXCaovipucky", strict=True))
_ARMENIAN: Final = dict(zip("ՍԼՕօսոհցԁ", "ULOouhhgd", strict=False))
#: Maps letters of other scripts to the ASCII letters that they look like.
LOOKALIKES: Final[dict[str, str]] = _ARMENIAN | _GREEK | _CYRILLIC

_PUNCTUATION: Final[dict[str, str]] = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\ufe58\u2e3a\u2e3b\u30fc", "-"),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u02b9", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2044\u2215\u29f8", "/"),
    **dict.fromkeys("\u2236\ua789\u02d0", ":"),
    **dict.fromkeys("\u00b7\u2022\u2027\u22c5\u3002\uff61", "."),
    "\u0085": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
    "\u2800": " ",
}
#: Combining marks for any letter or digit, in any script.
_COMBINING: Final = (
    (0x300, 0x370),
    (0x483, 0x48A),
    (0x1AB0, 0x1B00),
    (0x1DC0, 0x1E00),
    (0x20D0, 0x2100),
    (0xFE20, 0xFE30),
)
#: Invisible code points that are not in category Cf: fillers, variation selectors and reserved code points.
_INVISIBLE: Final = (
    (0x115F, 0x1161), (0x17B4, 0x17B6), (0x180B, 0x1810), (0x2065, 0x2066), (0x3164, 0x3165), (0xFE00, 0xFE10),
    (0xFFA0, 0xFFA1), (0xFFF0, 0xFFF9), (0xE0000, 0xE1000),
)  # fmt: skip
#: End of the ranges of code points that are looked up. The code points outside the three ranges are ideographs,
#: syllables and private use, which are unchanged, and tags, which `_INVISIBLE` contains.
_MAPPED_END: Final = 0x20000


def _read_as(point: int) -> int | None:
    character = chr(point)
    if character in _PUNCTUATION:
        return ord(_PUNCTUATION[character])
    category = unicodedata.category(character)
    if category == "Cf":
        return int(DELETED)
    if category == "Zs":
        return 0x20
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return 0x30 + digit
    # Letters with accents are unchanged, because customers write patterns with them.
    if unicodedata.decomposition(character).startswith("<"):
        plain = unicodedata.normalize("NFKC", character)
        if len(plain) == 1 and plain.isascii():
            return ord(plain)
        if len(plain) == 1 and plain in _PUNCTUATION:
            return ord(_PUNCTUATION[plain])
    return None


def _table() -> CodePoints:
    table = np.arange(0x110000, dtype=np.uint32)
    for point in chain(range(0x80, 0x3400), range(0xA000, 0xAC00), range(0xF900, _MAPPED_END)):
        if (value := _read_as(point)) is not None:
            table[point] = value
    for start, end in (*_COMBINING, *_INVISIBLE):
        table[start:end] = DELETED
    for letter, latin in LOOKALIKES.items():
        table[ord(letter)] = LOOKALIKE | np.uint32(ord(latin))
    return table


TABLE: Final = _table()
