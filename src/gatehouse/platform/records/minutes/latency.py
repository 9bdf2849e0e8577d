"""A histogram of latencies. The upper bound of each bucket is 10 percent above that of the previous bucket.

A percentile is the geometric mean of the bounds of its bucket, with an error of at most 4.9 percent. Buckets range from
0.1 milliseconds to an hour. Values outside this range count in the first or last bucket.
"""

import math
from collections.abc import Mapping
from typing import Final

_MIN_MILLISECONDS: Final = 0.1
_BUCKET_RATIO: Final = 1.1
_MAX_MILLISECONDS: Final = 3_600_000.0
_BUCKETS_PER_LOG: Final = 1 / math.log(_BUCKET_RATIO)
_LAST_BUCKET: Final = math.ceil(math.log(_MAX_MILLISECONDS / _MIN_MILLISECONDS) * _BUCKETS_PER_LOG)


def bucket(milliseconds: float) -> int:
    """Return the bucket of a latency. Bucket n contains values above `0.1 * 1.1 ** (n - 1)` and up to `0.1 *
    1.1 ** n`."""
    if milliseconds <= _MIN_MILLISECONDS:
        return 0
    return min(_LAST_BUCKET, math.ceil(math.log(milliseconds / _MIN_MILLISECONDS) * _BUCKETS_PER_LOG))


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the latency in milliseconds that at least the share `share` (0 to 1) of the requests did not exceed, or
    None without requests. `counts` are numbers of requests by bucket."""
    rank = math.ceil(share * sum(counts.values()))
    for number in sorted(counts):
        rank -= counts[number]
        if rank <= 0:
            return round(_MIN_MILLISECONDS * _BUCKET_RATIO ** (number - 0.5 if number else 0), 3)
    return None
