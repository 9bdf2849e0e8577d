"""Cooldowns: a model whose provider reports an exhausted rate limit is tried after all others until the limit resets.
So is, for some seconds, a deployment of a model alias whose provider refused the credentials.

A cooldown moves the next requests to other candidates before they are refused. It excludes nothing: a call without
another candidate is sent nevertheless.
"""

from collections import OrderedDict
from typing import Final

from gatehouse.engine.routing.circuits import CircuitKey
from gatehouse.foundation.clock import Clock

#: The cooldowns that began last are kept.
MAX_COOLDOWNS: Final = 10_000
#: The cooldown after a 429 without a valid `Retry-After`.
DEFAULT_COOLDOWN_SECONDS: Final = 1.0
#: The cooldown after a provider refused the credentials, which may be replaced at any time.
UNAUTHORIZED_COOLDOWN_SECONDS: Final = 10.0
#: A longer one is shortened: limits that reset once a day are tried again each minute.
MAX_COOLDOWN_SECONDS: Final = 60.0


class Cooldowns:
    """One worker's cooldowns, by the keys of models' circuits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: monotonic time of the end of each cooldown
        self._ends: OrderedDict[CircuitKey, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ends)

    def begin(self, key: CircuitKey, seconds: float | None) -> None:
        """Begin a cooldown of at most `MAX_COOLDOWN_SECONDS`, or of the default length. Replaces the model's earlier
        one."""
        length = DEFAULT_COOLDOWN_SECONDS if seconds is None else min(seconds, MAX_COOLDOWN_SECONDS)
        self._ends[key] = self._clock.monotonic() + length
        self._ends.move_to_end(key)
        if len(self._ends) > MAX_COOLDOWNS:
            self._ends.popitem(last=False)

    def seconds_left(self, key: CircuitKey) -> float:
        """Return the seconds until the end of the cooldown; zero without one."""
        return max(self._ends[key] - self._clock.monotonic(), 0.0) if self.is_cooling(key) else 0.0

    def is_cooling(self, key: CircuitKey) -> bool:
        """Return whether the model's limit is exhausted now, as far as this worker knows."""
        end = self._ends.get(key)
        if end is None:
            return False
        if self._clock.monotonic() < end:
            return True
        del self._ends[key]
        return False
