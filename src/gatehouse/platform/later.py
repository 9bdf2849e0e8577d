"""Work that an answer must not wait for, because how long it took would tell the caller something."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import structlog

log = structlog.get_logger(__name__)

#: Waiting at most. A flood beyond waits for its own work: slower, and nothing is lost or piled up.
_PLACES: Final = 256


class Later:
    """One a worker. What fails is logged; what is still waiting at the end of the worker is finished first."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts the work; returns at once unless too much is waiting."""
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if len(self._tasks) > _PLACES:
            await asyncio.shield(task)

    async def settle(self) -> None:
        """Returns when everything that was started is done."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            log.exception("later.failed")
