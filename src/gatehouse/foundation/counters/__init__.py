"""Rate limits: count requests over a sliding window of 60 seconds (docs/rate-limits.md).

memory      counts in this process
shared      counts in Redis for all workers; falls back to `memory` while Redis is unavailable or slow
script      the Lua script that Redis runs for each request

Both counters guarantee that no 60 seconds have more than `limit` admissions of one key. A refused request is not
counted. Both keep at most 601 buckets for each key: a bucket counts all admissions within 100 ms of its first one. A
bucket leaves the window when its last admission is 60 seconds old. So a slot becomes free up to 100 ms late and never
early. Requests more than 100 ms apart are counted to the microsecond.
"""

from math import ceil
from typing import Final, TypeAlias

import msgspec

#: length of the sliding window: a request counts for this time after its admission
WINDOW_SECONDS: Final = 60.0
#: maximum time between the first and the last admission of a bucket
BUCKET_SECONDS: Final = 0.1

#: a client's key and its maximum number of requests in a window
Claim: TypeAlias = tuple[str, int]


class RateState(msgspec.Struct, frozen=True, gc=False):
    """The values of the rate-limit headers. `reset` is the Unix time in whole seconds at which the oldest counted
    request has left the window, so that `remaining` rises. `reset` is rounded up: a client that waits until then is
    admitted."""

    limit: int
    remaining: int
    reset: int

    def headers(self) -> dict[str, str]:
        """Returns the rate-limit headers of a response."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }


class RateDecision(msgspec.Struct, frozen=True, gc=False):
    """The decision about one request. `claim` is the index of the claim that `rate` describes: the one that refused, or
    the one with the fewest requests left. `retry_after` is 0 if allowed, else whole seconds."""

    allowed: bool
    rate: RateState
    retry_after: int = 0
    claim: int = 0


def decision(*, allowed: bool, claim: int, limit: int, used: int, wait: float, now: float) -> RateDecision:
    """Returns the decision. `wait` is in seconds until the next slot becomes free. `now` is this host's Unix time, not
    that of the shared store, because clients compare `reset` with the response's time."""
    remaining = limit - used
    rate = RateState(limit, max(remaining, 0), ceil(now + wait))
    return RateDecision(allowed, rate, 0 if allowed else max(1, ceil(wait)), claim)
