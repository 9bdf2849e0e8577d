"""The process of the two model tiers (`gatehouse.detection.service`): started when a rule first needs one, so that an
outpost without such rules does without its memory."""

import asyncio
import contextlib
import sys
from typing import Final

import structlog

log = structlog.get_logger(__name__)

#: Seconds before it is started again, growing while it ends soon.
_FIRST_PAUSE, _LAST_PAUSE = 0.2, 10.0
_SETTLED: Final = 10.0


class DetectionProcess:
    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def start(self) -> None:
        """Returns at once; from now on it is kept running."""
        if self._task is None and not self._ended:
            self._task = asyncio.create_task(self._keep(), name="detection process")

    async def stop(self) -> None:
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _keep(self) -> None:
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE
        while True:
            began = loop.time()
            process = await asyncio.create_subprocess_exec(sys.executable, "-P", "-m", "gatehouse.detection.service")
            try:
                await process.wait()
            finally:
                if process.returncode is None:
                    process.terminate()
                    await process.wait()
            pause = _FIRST_PAUSE if loop.time() - began > _SETTLED else min(pause * 2, _LAST_PAUSE)
            log.warning("outpost.detection_ended", status=process.returncode)
            await asyncio.sleep(pause)
