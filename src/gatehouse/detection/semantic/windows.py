"""A long text is read through windows, and not through all of them."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from gatehouse.detection.semantic.backbone import Vector

#: Tokens. About 120 English words, so that a hundred take one run.
WINDOW: Final = 160
OVERLAP: Final = 32
#: Windows that are embedded at most: this many times 11 ms bound a text's time.
MAX_WINDOWS: Final = 6
#: Tokens of the one passage that is looked at by itself: an order of one sentence drowns in a window of prose.
PASSAGE: Final = 32


def spans(tokens: int) -> list[tuple[int, int]]:
    """Start and end of each window: as few as will do, all about as long. One empty window for an empty text."""
    count = max(1, math.ceil((tokens - OVERLAP) / (WINDOW - OVERLAP)))
    length = math.ceil((tokens + OVERLAP * (count - 1)) / count)
    starts = [round(number * (tokens - length) / max(count - 1, 1)) for number in range(count)]
    return [(start, start + length) for start in starts]


def chosen(windows: Sequence[tuple[int, int]], suspicion: Vector) -> list[tuple[int, int]]:
    """The first, the last, and between them those whose words are most suspicious. In the text's order."""
    if len(windows) <= MAX_WINDOWS:
        return list(windows)
    middle = np.argsort(-suspicion[1:-1], kind="stable")[: MAX_WINDOWS - 2] + 1
    return [windows[number] for number in sorted({0, len(windows) - 1, *map(int, middle)})]


def passages(tokens: int) -> list[tuple[int, int]]:
    """Of which the most suspicious is looked at by itself: one order in a page of prose. None where a window is hardly
    longer."""
    if tokens < 2 * PASSAGE:
        return []
    starts = [*range(0, tokens - PASSAGE, PASSAGE // 4), tokens - PASSAGE]
    return [(start, start + PASSAGE) for start in starts]
