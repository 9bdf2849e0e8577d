"""Computes the character view. Each code point is replaced by one character or removed. Only look-alikes depend on
their neighbours."""

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from gatehouse.detection.normalise.table import DELETED, LOOKALIKE, LOOKALIKES, TABLE, CodePoints
from gatehouse.detection.normalise.view import View

#: Number of characters on either side of a look-alike that decide whether it is read as a Latin letter.
REACH_CHARACTERS: Final = 32

#: Number of characters that are processed together. It bounds the memory that a long text needs.
_BLOCK_CHARACTERS: Final = 1 << 16
#: Code points below this one are unchanged.
_ASCII: Final = 0x80

_OTHER, _LATIN, _NATIVE, _JOINT = 0, 1, 2, 3
#: Characters that join the parts of a token.
_JOINTS: Final = frozenset("_-.@/+=")
_LAST_TOKEN: Final = re.compile(r"[\w\-.@/+=]*\Z")


def _kinds() -> npt.NDArray[np.uint8]:
    kinds = np.zeros(0x590, dtype=np.uint8)
    for point in range(0x590):
        if chr(point) in _JOINTS:
            kinds[point] = _JOINT
        elif chr(point).isalnum():
            kinds[point] = _LATIN if point < 0x80 else _NATIVE if point >= 0x370 else _OTHER
    return kinds


#: The class of each code point, for words with look-alikes. Greek, Cyrillic and Armenian letters are `_NATIVE`.
_KINDS: Final = _kinds()


def character_view(text: str) -> View:
    if text.isascii():
        return View(text)
    source = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    places = np.flatnonzero(source >= _ASCII)
    mapped = TABLE[source[places]]
    changed = mapped != source[places]
    if not changed.any():
        return View(text)
    places, mapped = places[changed], mapped[changed]
    result = source.copy()
    result[places] = mapped
    starts = None
    if (mapped == DELETED).any():
        starts = np.flatnonzero(result != DELETED)
        source, result = source[starts], result[starts]
    if (mapped[mapped != DELETED] >= LOOKALIKE).any():
        lookalikes = result >= LOOKALIKE
        places = np.flatnonzero(lookalikes)
        latin = np.zeros_like(lookalikes)
        for start in range(int(places[0]), int(places[-1]) + 1, _BLOCK_CHARACTERS):
            first, stop = max(0, start - REACH_CHARACTERS), start + _BLOCK_CHARACTERS
            window = slice(first, stop + REACH_CHARACTERS)
            latin[start:stop] = _meant_as_latin(source[window], lookalikes[window])[start - first : stop - first]
        latin &= lookalikes
        result = np.where(lookalikes, np.where(latin, result & ~LOOKALIKE, source), result)
    return View(result.tobytes().decode("utf-32-le", "surrogatepass"), starts)


def unsettled(view: View, source: str) -> int:
    """Return the first character of the view that could change if `source` continued. Only the last token can
    change."""
    if source.isascii() and "\\" not in source:
        return len(view.text)
    token = _LAST_TOKEN.search(view.text, max(0, len(view.text) - REACH_CHARACTERS))
    assert token is not None
    token_source = source[view.start_of(token.start(), len(source)) :]
    if token_source.isascii() and "\\" not in token_source:
        return len(view.text)
    return token.start() if "\\" in token_source or not LOOKALIKES.keys().isdisjoint(token_source) else len(view.text)


def _meant_as_latin(source: CodePoints, lookalikes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which look-alikes are read as Latin letters.

    A look-alike is read as Latin if its token contains a Latin letter or digit, and contains no native letter without a
    Latin look-alike. Genuine Russian and Greek words are therefore unchanged, also next to a number.

    """
    kinds = _KINDS[np.minimum(source, len(_KINDS) - 1)]
    kinds[lookalikes] = _OTHER
    word = (kinds != _OTHER) | lookalikes
    places = np.arange(len(source))
    # The word around each position extends from the last break before it to the next break.
    first = np.maximum.accumulate(np.where(word, -1, places)) + 1
    stop = np.minimum.accumulate(np.where(word, len(source), places)[::-1])[::-1]
    first = np.maximum(first, places - REACH_CHARACTERS)
    stop = np.minimum(stop, places + REACH_CHARACTERS)
    latin = np.concatenate(([0], np.cumsum(kinds == _LATIN)))
    native = np.concatenate(([0], np.cumsum(kinds == _NATIVE)))
    stop = np.maximum(stop, first)
    is_latin: npt.NDArray[np.bool_] = (latin[stop] > latin[first]) & (native[stop] == native[first])
    return is_latin
