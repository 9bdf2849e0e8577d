"""Counting requests over a sliding 60-second window (reference 1, Rate limiting on the platform).

memory      counts in this process
shared      counts in Redis, for all workers together; falls back to `memory` while Redis is away or slow
script      the one call that Redis runs for a request

Both counters keep the same promise: of one key, no 60 seconds ever see more than `limit` admissions, and a request that
is refused takes nothing. Both keep at most 601 buckets a key, whatever the limit: admissions within 100 ms of a
bucket's first share it and leave the window together, with its last. So a slot can come free up to 100 ms late, and
never early; requests more than 100 ms apart are counted to the microsecond.
"""

from math import ceil
from typing import Final, TypeAlias

import msgspec

#: Seconds that a request counts.
WINDOW: Final = 60.0
#: Most time, in seconds, between the first and the last admission of a bucket.
BUCKET: Final = 0.1

#: What to count against what: a client key, and how many requests it may make in a window.
Claim: TypeAlias = tuple[str, int]


class RateState(msgspec.Struct, frozen=True, gc=False):
    """What the rate-limit headers say. `reset` is the Unix second by which the oldest counted request has left the
    window, so that `remaining` goes up: rounded up, for a client that waits until then must be let in."""

    limit: int
    remaining: int
    reset: int

    def headers(self) -> dict[str, str]:
        """Reference 1, Rate limiting on the platform, 10."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }


class Taken(msgspec.Struct, frozen=True, gc=False):
    """The answer to one take. `claim` is the index of the claim that `rate` speaks of: the one that refused, or of
    those that let through the one with the least left. `retry_after` is 0 when allowed, else whole seconds."""

    allowed: bool
    rate: RateState
    retry_after: int = 0
    claim: int = 0


def told(*, allowed: bool, claim: int, limit: int, used: int, wait: float, now: float) -> Taken:
    """`wait` is seconds until the next slot comes free, `now` Unix time: the client's clock is set against ours, not
    against that of the shared store."""
    remaining = limit - used
    rate = RateState(limit, max(remaining, 0), ceil(now + wait))
    return Taken(allowed, rate, 0 if allowed else max(1, ceil(wait)), claim)
