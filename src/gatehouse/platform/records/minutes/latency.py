"""How long requests took, in few numbers: each bucket reaches a tenth further than the one before.

A percentile is told as the geometric middle of its bucket, at most 4.9 percent beside the truth, from 0.1 milliseconds
to an hour; what is outside counts as the nearest of these.
"""

import math
from collections.abc import Mapping
from typing import Final

_SMALLEST: Final = 0.1
_STEP: Final = 1.1
_LARGEST: Final = 3_600_000.0
_PER_LOG: Final = 1 / math.log(_STEP)
_LAST: Final = math.ceil(math.log(_LARGEST / _SMALLEST) * _PER_LOG)


def bucket(milliseconds: float) -> int:
    """Bucket n holds what is above `0.1 * 1.1 ** (n - 1)` and at most `0.1 * 1.1 ** n`."""
    if milliseconds <= _SMALLEST:
        return 0
    return min(_LAST, math.ceil(math.log(milliseconds / _SMALLEST) * _PER_LOG))


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """In milliseconds, of counts by bucket: the time that at least `share` (0 to 1) of the requests did not exceed.
    None without requests."""
    rank = math.ceil(share * sum(counts.values()))
    for number in sorted(counts):
        rank -= counts[number]
        if rank <= 0:
            return round(_SMALLEST * _STEP ** (number - 0.5 if number else 0), 3)
    return None
