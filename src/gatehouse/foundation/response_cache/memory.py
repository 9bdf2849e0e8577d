"""A response cache in this process."""

from collections import OrderedDict
from typing import Final, NamedTuple

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock

#: memory of an entry in addition to its value
_ENTRY_OVERHEAD_BYTES: Final = 400


class _Entry(NamedTuple):
    value: bytes
    expires_at: float


class MemoryCache:
    """An LRU cache of at most `max_bytes`. An expired entry is removed when it is read, or when it is the least
    recently used entry and room is needed."""

    def __init__(self, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self.bytes = 0

    async def get(self, key: bytes) -> bytes | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires_at <= self._clock.monotonic():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    def put(self, key: bytes, value: bytes, seconds: int) -> None:
        size = _size(value)
        if size > self._max_bytes:
            return
        if key in self._entries:
            self._drop(key)
        while self.bytes + size > self._max_bytes:
            self._drop(next(iter(self._entries)))
        self._entries[key] = _Entry(value, self._clock.monotonic() + seconds)
        self.bytes += size

    def _drop(self, key: bytes) -> None:
        self.bytes -= _size(self._entries.pop(key).value)


def _size(value: bytes) -> int:
    return len(value) + _ENTRY_OVERHEAD_BYTES
