"""Runs the process of the two model tiers (`gatehouse.detection.service`). The process is started when a rule first
needs a model tier. So an outpost without such rules does not use memory for it."""

import asyncio
import contextlib
import sys
from typing import Final

import structlog

log = structlog.get_logger(__name__)

#: Seconds before a restart. They double each time the process has ended early.
_MIN_RESTART_SECONDS, _MAX_RESTART_SECONDS = 0.2, 10.0
#: If the process has run for this number of seconds, the delay before its next restart is the shortest one.
_STABLE_SECONDS: Final = 10.0


class DetectionProcess:
    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def start(self) -> None:
        """Starts the process, and starts it again each time it ends. Returns immediately."""
        if self._task is None and not self._ended:
            self._task = asyncio.create_task(self._supervise(), name="detection process")

    async def stop(self) -> None:
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _supervise(self) -> None:
        loop, delay = asyncio.get_running_loop(), _MIN_RESTART_SECONDS
        while True:
            started_at = loop.time()
            process = await asyncio.create_subprocess_exec(sys.executable, "-P", "-m", "gatehouse.detection.service")
            try:
                await process.wait()
            finally:
                if process.returncode is None:
                    process.terminate()
                    await process.wait()
            delay = (
                _MIN_RESTART_SECONDS
                if loop.time() - started_at > _STABLE_SECONDS
                else min(delay * 2, _MAX_RESTART_SECONDS)
            )
            log.warning("outpost.detection_ended", status=process.returncode)
            await asyncio.sleep(delay)
