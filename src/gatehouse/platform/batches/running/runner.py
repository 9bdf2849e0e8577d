"""Runs the turns of batches in one worker."""

import asyncio
from contextlib import suppress
from typing import Final
from uuid import UUID

from gatehouse.administration.job_worker import JobWorker
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.batches.running.jobs import BATCH_JOBS, TurnRunner
from gatehouse.platform.batches.running.turn import Capacity, Turn
from gatehouse.platform.request.ports import Host

#: Maximum number of batches that a worker runs at the same time. At most half of them belong to one organization.
_MAX_BATCHES: Final = 8
#: Time after which another worker continues the batches of a worker that was killed.
_LEASE_SECONDS: Final = 30.0


class BatchRunner:
    """Runs up to `BATCH_CONCURRENCY` lines at the same time. `drain` ends the turns after their lines in progress."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.capacity = Capacity(host.settings.batch_concurrency)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.capacity.concurrency:
            worker: JobWorker[TurnRunner] = JobWorker(
                BATCH_JOBS,
                self,
                self._host.database,
                slots=_MAX_BATCHES,
                grace_seconds=self._host.settings.drain_seconds,
                lease_seconds=_LEASE_SECONDS,
            )
            self._task = asyncio.create_task(worker.run(), name="batches")

    def drain(self) -> None:
        """Start no more lines. Lines in progress have `DRAIN_SECONDS` to end."""
        if not self.capacity.stopping.is_set():
            self.capacity.stopping.set()
            if self._task is not None:
                # A second cancellation would end the wait for the lines in progress.
                self._task.cancel()

    async def stop(self) -> None:
        """Return once no line is in progress."""
        self.drain()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task

    async def run_turn(self, tenant_id: TenantId, batch_id: UUID) -> None:
        await Turn(self._host, self.capacity, tenant_id, batch_id).run()
