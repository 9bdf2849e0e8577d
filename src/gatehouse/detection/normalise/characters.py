"""The character view: each code point is read as one character or not at all, by itself and its near neighbours."""

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from gatehouse.detection.normalise.table import DELETED, LOOKALIKE, LOOKALIKES, TABLE, CodePoints
from gatehouse.detection.normalise.view import View

#: How far to either side, in characters of the view, a word is looked at to decide about a look-alike in it.
REACH: Final = 32

#: Characters that are looked at together, so that a long text takes no more memory than a short one.
_BLOCK: Final = 1 << 16
#: Code points below are read as they are.
_ASCII: Final = 0x80

_OTHER, _LATIN, _NATIVE, _JOINT = 0, 1, 2, 3
#: What holds the parts of a token together.
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


#: What a code point is for the words that look-alikes stand in: Greek, Cyrillic and Armenian letters are native.
_KINDS: Final = _kinds()


def character_view(text: str) -> View:
    if text.isascii():
        return View(text)
    source = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    places = np.flatnonzero(source >= _ASCII)
    read = TABLE[source[places]]
    changed = read != source[places]
    if not changed.any():
        return View(text)
    places, read = places[changed], read[changed]
    result = source.copy()
    result[places] = read
    starts = None
    if (read == DELETED).any():
        starts = np.flatnonzero(result != DELETED)
        source, result = source[starts], result[starts]
    if (read[read != DELETED] >= LOOKALIKE).any():
        lookalikes = result >= LOOKALIKE
        places = np.flatnonzero(lookalikes)
        latin = np.zeros_like(lookalikes)
        for start in range(int(places[0]), int(places[-1]) + 1, _BLOCK):
            first, stop = max(0, start - REACH), start + _BLOCK
            near = slice(first, stop + REACH)
            latin[start:stop] = _meant_as_latin(source[near], lookalikes[near])[start - first : stop - first]
        latin &= lookalikes
        result = np.where(lookalikes, np.where(latin, result & ~LOOKALIKE, source), result)
    return View(result.tobytes().decode("utf-32-le", "surrogatepass"), starts)


def unsettled(view: View, source: str) -> int:
    """From which character on a view of `source` could change if the text went on: only the last token can."""
    if source.isascii() and "\\" not in source:
        return len(view.text)
    token = _LAST_TOKEN.search(view.text, max(0, len(view.text) - REACH))
    assert token is not None
    written = source[view.start_of(token.start(), len(source)) :]
    if written.isascii() and "\\" not in written:
        return len(view.text)
    return token.start() if "\\" in written or not LOOKALIKES.keys().isdisjoint(written) else len(view.text)


def _meant_as_latin(source: CodePoints, lookalikes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """A look-alike is read as Latin in a token that has Latin letters or digits, and no letter that is only native.

    So an honest Russian or Greek word is left alone, also beside a number."""
    kinds = _KINDS[np.minimum(source, len(_KINDS) - 1)]
    kinds[lookalikes] = _OTHER
    word = (kinds != _OTHER) | lookalikes
    places = np.arange(len(source))
    # The word around each place: behind the last break before it, up to the next one.
    first = np.maximum.accumulate(np.where(word, -1, places)) + 1
    behind = np.minimum.accumulate(np.where(word, len(source), places)[::-1])[::-1]
    first = np.maximum(first, places - REACH)
    behind = np.minimum(behind, places + REACH)
    latin = np.concatenate(([0], np.cumsum(kinds == _LATIN)))
    native = np.concatenate(([0], np.cumsum(kinds == _NATIVE)))
    behind = np.maximum(behind, first)
    meant: npt.NDArray[np.bool_] = (latin[behind] > latin[first]) & (native[behind] == native[first])
    return meant
