"""Computes the features of a text: its word pieces and their shapes.

The vocabulary has no capital letters. The *shape* of a piece therefore contains the case of the piece and of its word.
It also contains whether the piece begins a word, and whether white space precedes it.
"""

import re
from typing import Final, NamedTuple

import numpy as np
from tokenizers import Tokenizer

#: Cases of a piece or word. A shape is a number below 256: two cases of three bits each, and two bits.
NOTHING, LOWER, CAPITALISED, UPPER, MIXED, DIGITS, OTHER, SINGLE_UPPER = range(8)

_WORD: Final = re.compile(r"[^\W_]+")
#: Replaces typographic quotes, dashes and spaces, and full-width letters and digits. Each character is replaced by one
#: character, so that offsets do not change.
_PLAIN: Final = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2011": "-", "\u00a0": " "}
    | {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
)


class Pieces(NamedTuple):
    """The pieces of a text, as arrays of equal length: vocabulary ids, shapes, starts and ends in code points, and
    whether a piece is the first one of its word."""

    ids: np.ndarray
    shapes: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    first: np.ndarray


def pieces(tokenizer: Tokenizer, text: str) -> Pieces:
    plain = text.translate(_PLAIN)
    encoding = tokenizer.encode(plain, add_special_tokens=False)
    words = _words(plain)
    size = len(encoding.ids)
    shapes, first = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    starts, ends = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for index, (start, end) in enumerate(encoding.offsets):
        word_start, word_shape = words.get(start, (start, OTHER))
        opens = word_start == start
        spaced = start == 0 or plain[start - 1].isspace()
        shapes[index] = shape(plain[start:end]) * 32 + word_shape * 4 + opens * 2 + spaced
        first[index] = opens and (index == 0 or starts[index - 1] != start)
        starts[index], ends[index] = start, end
    return Pieces(np.asarray(encoding.ids, np.int64), shapes, starts, ends, first)


def _words(text: str) -> dict[int, tuple[int, int]]:
    """Return for each code point of a word the start and the case of the word."""
    entries: dict[int, tuple[int, int]] = {}
    for word in _WORD.finditer(text):
        entry = (word.start(), shape(word.group()))
        for position in range(word.start(), word.end()):
            entries[position] = entry
    return entries


def shape(piece: str) -> int:
    if piece.islower():
        return LOWER
    if piece.isupper():
        return UPPER if len(piece) > 1 else SINGLE_UPPER
    if piece.isdigit():
        return DIGITS
    if not any(character.isalpha() for character in piece):
        return OTHER
    return CAPITALISED if piece[0].isupper() and piece[1:].islower() else MIXED
