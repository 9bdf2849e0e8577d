"""Cooldowns: a model whose provider reports an exhausted rate limit is tried after all others until the limit resets.
If a provider refuses the credentials, a deployment of a model alias is also tried after all others, for some seconds.

A cooldown moves the next requests to other candidates before they are refused. It excludes nothing: a call without
another candidate is sent nevertheless. The workers of a machine share their cooldowns (`Ports.shared_cooldowns`).
"""

from collections import OrderedDict
from typing import Final

from gatehouse.engine.routing.circuits import CircuitKey
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.processes.shared_times import SharedTimes

#: Maximum number of cooldowns. Those that began last are kept.
MAX_COOLDOWNS: Final = 10_000
#: The cooldown after a 429 without a valid `Retry-After`.
DEFAULT_COOLDOWN_SECONDS: Final = 1.0
#: The cooldown after a provider refused the credentials, which may be replaced at any time.
UNAUTHORIZED_COOLDOWN_SECONDS: Final = 10.0
#: A longer cooldown is shortened, so that a limit that resets once a day is tried again each minute.
MAX_COOLDOWN_SECONDS: Final = 60.0


_NANOSECONDS: Final = 10**9


class Cooldowns:
    """Cooldowns by the keys of models' circuits: those that this worker has begun, and those that the other workers of
    this machine have begun under the same `purpose`."""

    def __init__(self, clock: Clock, shared: SharedTimes | None = None, purpose: str = "") -> None:
        self._clock = clock
        self._shared = SharedTimes() if shared is None else shared
        self._purpose = purpose
        #: monotonic time of the end of each cooldown that this worker has begun
        self._ends: OrderedDict[CircuitKey, float] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of cooldowns that this worker keeps."""
        return len(self._ends)

    def __bool__(self) -> bool:
        """Return whether any model may be cooling. Without cooldowns, a request computes no keys."""
        return bool(self._ends) or self._shared.any_after(int(self._clock.monotonic() * _NANOSECONDS))

    def begin(self, key: CircuitKey, seconds: float | None) -> None:
        """Begin a cooldown of at most `MAX_COOLDOWN_SECONDS`, or of the default length if `seconds` is None. It
        replaces an earlier cooldown with the same key."""
        length = DEFAULT_COOLDOWN_SECONDS if seconds is None else min(seconds, MAX_COOLDOWN_SECONDS)
        end = self._ends[key] = self._clock.monotonic() + length
        self._shared.put(self._shared_key(key), int(end * _NANOSECONDS))
        self._ends.move_to_end(key)
        if len(self._ends) > MAX_COOLDOWNS:
            self._ends.popitem(last=False)

    def seconds_left(self, key: CircuitKey) -> float:
        """Return the seconds until the end of the cooldown; zero without one."""
        now = self._clock.monotonic()
        end = self._ends.get(key, 0.0)
        if end and end <= now:
            del self._ends[key]
        if self._shared.any_after(int(now * _NANOSECONDS)):
            end = max(end, self._shared.get(self._shared_key(key)) / _NANOSECONDS)
        return max(end - now, 0.0)

    def is_cooling(self, key: CircuitKey) -> bool:
        """Return whether there is a cooldown with this key now."""
        return self.seconds_left(key) > 0

    def _shared_key(self, key: CircuitKey) -> bytes:
        return "\0".join((self._purpose, *map(str, key))).encode(errors="surrogatepass")
