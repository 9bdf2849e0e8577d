"""A long text is read through windows, and not through all of them."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Tokens. About 70 English words; the backbone takes 512 at most, but one sentence that stands out in 96 tokens drowns
#: in more.
WINDOW: Final = 96
STRIDE: Final = 64
#: Windows that are embedded at most: this many times 6 ms bound a text's time.
MOST: Final = 8


def spans(tokens: int) -> list[tuple[int, int]]:
    """Start and end of each window; the last one ends with the text. One empty window for an empty text."""
    if tokens <= WINDOW:
        return [(0, tokens)]
    starts = [*range(0, tokens - WINDOW, STRIDE), tokens - WINDOW]
    return [(start, start + WINDOW) for start in starts]


def chosen(windows: Sequence[tuple[int, int]], suspicion: NDArray[np.float32]) -> list[tuple[int, int]]:
    """The first, the last, and between them those whose words are most suspicious. In the text's order."""
    if len(windows) <= MOST:
        return list(windows)
    middle = np.argsort(-suspicion[1:-1], kind="stable")[: MOST - 2] + 1
    return [windows[number] for number in sorted({0, len(windows) - 1, *map(int, middle)})]
