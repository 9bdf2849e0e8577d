"""Windows of long texts, and the choice of those that are read."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from gatehouse.detection.semantic.backbone import Vector

#: Tokens of a window, about 120 English words.
WINDOW: Final = 160
OVERLAP: Final = 32
#: Maximum windows of a text that are read; each takes about 11 ms.
MAX_WINDOWS: Final = 6
#: Tokens of a passage that is read by itself, because one sentence has little weight in a window of prose.
PASSAGE: Final = 32


def spans(tokens: int) -> list[tuple[int, int]]:
    """Return start and end of each window: as few as possible, of similar length. An empty text has one empty
    window."""
    count = max(1, math.ceil((tokens - OVERLAP) / (WINDOW - OVERLAP)))
    length = math.ceil((tokens + OVERLAP * (count - 1)) / count)
    starts = [round(number * (tokens - length) / max(count - 1, 1)) for number in range(count)]
    return [(start, start + length) for start in starts]


def chosen(windows: Sequence[tuple[int, int]], suspicion: Vector) -> list[tuple[int, int]]:
    """Return the windows that are read, in order: the first, the last, and the most suspicious ones between them."""
    if len(windows) <= MAX_WINDOWS:
        return list(windows)
    middle = np.argsort(-suspicion[1:-1], kind="stable")[: MAX_WINDOWS - 2] + 1
    return [windows[number] for number in sorted({0, len(windows) - 1, *map(int, middle)})]


def passages(tokens: int) -> list[tuple[int, int]]:
    """Return the passages, the most suspicious of which is read by itself. A text that is little longer than a passage
    has none."""
    if tokens < 2 * PASSAGE:
        return []
    starts = [*range(0, tokens - PASSAGE, PASSAGE // 4), tokens - PASSAGE]
    return [(start, start + PASSAGE) for start in starts]
