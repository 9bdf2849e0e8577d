"""Background tasks. A response must not wait for them, because their duration would leak information (a timing side
channel)."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import structlog

log = structlog.get_logger(__name__)

#: If this number of tasks is running, a caller waits for its own task. So the number is bounded, and no task is
#: dropped.
_MAX_TASKS: Final = 256


class BackgroundTasks:
    """The background tasks of one worker. Failures are logged. The worker finishes all tasks before it stops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the work and return at once, unless too many tasks are running."""
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if len(self._tasks) > _MAX_TASKS:
            await asyncio.shield(task)

    async def settle(self) -> None:
        """Wait until all started tasks are done."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            log.exception("later.failed")
