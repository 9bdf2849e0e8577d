"""Limits the records of refused token requests to one a minute for each client, with the number of attempts."""

from collections import OrderedDict
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import Clock

_RECORD_INTERVAL_SECONDS: Final = 60.0
#: Maximum number of clients in a worker's memory; only existing clients are counted.
_MAX_CLIENTS: Final = 10_000


class _ClientFailures(msgspec.Struct):
    recorded_at: float
    unrecorded: int = 0


class FailureThrottle:
    """Counts failed token requests of clients. Each worker has one throttle."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures_by_client: OrderedDict[UUID, _ClientFailures] = OrderedDict()

    def attempts_to_record(self, client_id: UUID) -> int | None:
        """Count an attempt. Return the number of attempts since the last record, or None if the last record is less
        than a minute old."""
        now = self._clock.monotonic()
        failures = self._failures_by_client.get(client_id)
        if failures is not None and now - failures.recorded_at < _RECORD_INTERVAL_SECONDS:
            failures.unrecorded += 1
            return None
        attempts = 1 + (failures.unrecorded if failures is not None else 0)
        self._failures_by_client[client_id] = _ClientFailures(now)
        self._failures_by_client.move_to_end(client_id)
        if len(self._failures_by_client) > _MAX_CLIENTS:
            self._failures_by_client.popitem(last=False)
        return attempts
