"""Hashes n-grams of one to three tokens into buckets. N-grams represent the order of words, which an embedding does not
contain."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gatehouse.detection.semantic.backbone import Ids, Vector

_MAX_NGRAM_TOKENS: Final = 3
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_SHIFT: Final = np.uint64(40)

Buckets = NDArray[np.int64]


def buckets(ids: Ids, count: int) -> Buckets:
    """Return an array [3, tokens] with the buckets of the n-grams that begin at each token. An n-gram that would extend
    beyond the end of the text has -1. `count`, the number of buckets, is a power of two and at most 2**24."""
    result = np.full((_MAX_NGRAM_TOKENS, len(ids)), -1, dtype=np.int64)
    state = np.zeros(len(ids), dtype=np.uint64)
    for length in range(min(_MAX_NGRAM_TOKENS, len(ids))):
        tail = ids[length:].astype(np.uint64) + np.uint64(1)
        state = (state[: len(tail)] ^ tail) * _FACTORS[length]
        result[length, : len(tail)] = (state >> _SHIFT).astype(np.int64) & (count - 1)
    return result


def distinct(window_buckets: Buckets) -> tuple[Buckets, Vector]:
    """Return the distinct buckets of a window, and an equal value for each bucket. The values form a vector of length
    1."""
    used = np.unique(window_buckets[window_buckets >= 0])
    return used, np.full(len(used), 1 / np.sqrt(max(len(used), 1)), dtype=np.float32)
