"""Limits the load of replays on a worker: one replay at a time, at most half of the worker's time, and at most a
minute."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

from gatehouse.foundation.errors import TooManyRequests

#: Seconds after which a replay stops and leaves out the remaining samples.
MAX_REPLAY_SECONDS: Final = 60.0
#: Seconds of work after which a pause is due. One piece of work may exceed them.
_BUSY_SECONDS_BEFORE_PAUSE: Final = 0.005

#: Locked while a replay runs in this process.
_lock: Final = asyncio.Lock()


class ReplayRunning(TooManyRequests):
    """Another replay runs on this worker. Only one runs at a time, because a replay takes up to half of a worker's
    time."""

    code = "replay_running"
    message = "A replay is running on this worker. Try again when it is done."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "10"})


class Pace:
    """Paces a replay: after a few milliseconds of work it sleeps for the same time."""

    def __init__(self) -> None:
        self._deadline = monotonic() + MAX_REPLAY_SECONDS
        self._busy_seconds = 0.0

    def is_over(self) -> bool:
        return monotonic() > self._deadline

    async def pause_after(self, seconds: float) -> None:
        """Add `seconds` of work, and sleep if a pause is due."""
        self._busy_seconds += seconds
        if self._busy_seconds > _BUSY_SECONDS_BEFORE_PAUSE:
            await asyncio.sleep(self._busy_seconds)
            self._busy_seconds = 0.0


@asynccontextmanager
async def one_at_a_time() -> AsyncIterator[Pace]:
    """Run a replay under this worker's replay lock, and yield its pace. Raises `ReplayRunning` if another replay has
    the lock."""
    if _lock.locked():
        raise ReplayRunning
    async with _lock:
        yield Pace()
