"""Cooldowns: a model whose provider reports an exhausted rate limit is tried after all others until the limit resets.
If a provider refuses the credentials, a deployment of a model alias is also tried after all others, for some seconds.

A cooldown moves the next requests to other candidates before they are refused. It excludes nothing: a call without
another candidate is sent nevertheless.
"""

from collections import OrderedDict
from typing import Final

from gatehouse.engine.routing.circuits import CircuitKey
from gatehouse.foundation.clock import Clock

#: Maximum number of cooldowns. Those that began last are kept.
MAX_COOLDOWNS: Final = 10_000
#: The cooldown after a 429 without a valid `Retry-After`.
DEFAULT_COOLDOWN_SECONDS: Final = 1.0
#: The cooldown after a provider refused the credentials, which may be replaced at any time.
UNAUTHORIZED_COOLDOWN_SECONDS: Final = 10.0
#: A longer cooldown is shortened, so that a limit that resets once a day is tried again each minute.
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
        """Begin a cooldown of at most `MAX_COOLDOWN_SECONDS`, or of the default length if `seconds` is None. It
        replaces an earlier cooldown with the same key."""
        length = DEFAULT_COOLDOWN_SECONDS if seconds is None else min(seconds, MAX_COOLDOWN_SECONDS)
        self._ends[key] = self._clock.monotonic() + length
        self._ends.move_to_end(key)
        if len(self._ends) > MAX_COOLDOWNS:
            self._ends.popitem(last=False)

    def seconds_left(self, key: CircuitKey) -> float:
        """Return the seconds until the end of the cooldown; zero without one."""
        return max(self._ends[key] - self._clock.monotonic(), 0.0) if self.is_cooling(key) else 0.0

    def is_cooling(self, key: CircuitKey) -> bool:
        """Return whether there is a cooldown with this key now."""
        end = self._ends.get(key)
        if end is None:
            return False
        if self._clock.monotonic() < end:
            return True
        del self._ends[key]
        return False
