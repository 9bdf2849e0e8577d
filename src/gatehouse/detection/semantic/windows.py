"""Divides long texts into windows and passages, and chooses the windows that are read."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from gatehouse.detection.semantic.backbone import Vector

#: Maximum tokens of a window, about 120 English words.
WINDOW_TOKENS: Final = 160
OVERLAP_TOKENS: Final = 32
#: Maximum number of windows of a text that are read. Each takes about 11 ms.
MAX_WINDOWS: Final = 6
#: Tokens of a passage. The most suspicious passage is also read separately, because one sentence has little weight in a
#: window of prose.
PASSAGE_TOKENS: Final = 32


def spans(tokens: int) -> list[tuple[int, int]]:
    """Return the start and end of each window. There are as few windows as possible, and they have similar lengths. An
    empty text has one empty window."""
    count = max(1, math.ceil((tokens - OVERLAP_TOKENS) / (WINDOW_TOKENS - OVERLAP_TOKENS)))
    length = math.ceil((tokens + OVERLAP_TOKENS * (count - 1)) / count)
    starts = [round(number * (tokens - length) / max(count - 1, 1)) for number in range(count)]
    return [(start, start + length) for start in starts]


def choose(windows: Sequence[tuple[int, int]], suspicion: Vector) -> list[tuple[int, int]]:
    """Return the windows to read, in order: the first one, the last one, and the most suspicious ones between them."""
    if len(windows) <= MAX_WINDOWS:
        return list(windows)
    middle = np.argsort(-suspicion[1:-1], kind="stable")[: MAX_WINDOWS - 2] + 1
    return [windows[number] for number in sorted({0, len(windows) - 1, *map(int, middle)})]


def passages(tokens: int) -> list[tuple[int, int]]:
    """Return the start and end of each passage. Passages overlap. A text of less than two passages has none."""
    if tokens < 2 * PASSAGE_TOKENS:
        return []
    starts = [*range(0, tokens - PASSAGE_TOKENS, PASSAGE_TOKENS // 4), tokens - PASSAGE_TOKENS]
    return [(start, start + PASSAGE_TOKENS) for start in starts]
