"""Runs a child process of the outpost: the process of the two model tiers (`gatehouse.detection.service`), and the
owner of the stdio MCP servers (`gatehouse.engine.mcp.stdio`)."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Final

import structlog

from gatehouse.foundation.tasks import cancel_all

log = structlog.get_logger(__name__)

#: Seconds before a restart. They double each time the process has ended early.
_MIN_RESTART_SECONDS, _MAX_RESTART_SECONDS = 0.2, 10.0
#: If the process has run for this number of seconds, the delay before its next restart is the shortest one.
_STABLE_SECONDS: Final = 10.0
#: Maximum time for which a process may end by itself when the outpost stops.
_STOP_SECONDS: Final = 10.0


class ChildProcess:
    """A process that runs a module of this package. It is started again each time it ends."""

    def __init__(self, module: str, environment: Mapping[str, str] | None = None, *, sent: bytes | None = None) -> None:
        """`environment` is the environment of the process, or None for that of the outpost. `sent` is written to its
        standard input, or None if it has that of the outpost."""
        self._module = module
        self._environment = environment
        self._sent = sent
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def start(self) -> None:
        """Starts the process if it does not run yet. Returns immediately."""
        if self._task is None and not self._ended:
            self._task = asyncio.create_task(self._supervise(), name=self._module)

    async def stop(self) -> None:
        self._ended = True
        if self._task is not None:
            await cancel_all(self._task)

    async def _supervise(self) -> None:
        loop, delay = asyncio.get_running_loop(), _MIN_RESTART_SECONDS
        while True:
            started_at = loop.time()
            status = await self._run()
            is_stable = loop.time() - started_at > _STABLE_SECONDS
            delay = _MIN_RESTART_SECONDS if is_stable else min(delay * 2, _MAX_RESTART_SECONDS)
            log.warning("outpost.child_ended", module=self._module, status=status)
            await asyncio.sleep(delay)

    async def _run(self) -> int | None:
        """Runs the process until it ends. Returns its exit status, or None if it cannot be started."""
        try:
            # -P prevents the package named `platform` from shadowing the module of the standard library.
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                self._module,
                env=self._environment,
                stdin=None if self._sent is None else asyncio.subprocess.PIPE,
            )
        except OSError as error:
            # The system has no free process or memory.
            log.warning("outpost.cannot_start_child", module=self._module, reason=str(error))
            return None
        try:
            if process.stdin is not None and self._sent is not None:
                process.stdin.write(self._sent)
                process.stdin.close()
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                try:
                    async with asyncio.timeout(_STOP_SECONDS):
                        await process.wait()
                except TimeoutError:
                    process.kill()
                    await process.wait()
