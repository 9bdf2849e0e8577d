"""Which refused token requests are written down: the first of a minute for each client, with how many came before."""

from collections import OrderedDict
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import Clock

_INTERVAL_SECONDS: Final = 60.0
#: Clients that a worker remembers; only known clients get here.
_REMEMBERED: Final = 10_000


class _Seen(msgspec.Struct):
    recorded_at: float
    since: int = 0


class Failures:
    """One a worker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: OrderedDict[UUID, _Seen] = OrderedDict()

    def attempts_to_record(self, client_id: UUID) -> int | None:
        """Counts an attempt: how many there were since the last record, or None while that one is recent."""
        now = self._clock.monotonic()
        seen = self._seen.get(client_id)
        if seen is not None and now - seen.recorded_at < _INTERVAL_SECONDS:
            seen.since += 1
            return None
        attempts = 1 + (seen.since if seen is not None else 0)
        self._seen[client_id] = _Seen(now)
        self._seen.move_to_end(client_id)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return attempts
