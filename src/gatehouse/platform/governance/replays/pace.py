"""How much of a worker a replay takes: one at a time, half of its time, a minute."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

from gatehouse.platform.governance.replays.errors import ReplayRunning

#: Seconds after which what was not looked at is left out.
LONGEST: Final = 60.0
#: Seconds of work at a stretch.
_STRETCH: Final = 0.005

#: One at a time: each worker's own.
_turn: Final = asyncio.Lock()


class Pace:
    """After each few milliseconds of work a replay rests as long."""

    def __init__(self) -> None:
        self._until = monotonic() + LONGEST
        self._busy = 0.0

    def is_over(self) -> bool:
        return monotonic() > self._until

    async def worked(self, seconds: float) -> None:
        self._busy += seconds
        if self._busy > _STRETCH:
            await asyncio.sleep(self._busy)
            self._busy = 0.0


@asynccontextmanager
async def one_at_a_time() -> AsyncIterator[Pace]:
    """Raises `ReplayRunning`."""
    if _turn.locked():
        raise ReplayRunning
    async with _turn:
        yield Pace()
