"""Runs the waiting work of a queue, such as deliveries to receivers. Every process that runs jobs takes a part of the
work."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Generic, Protocol, TypeVar
from uuid import UUID

import structlog

from gatehouse.platform.background.jobs import Tools

log = structlog.get_logger(__name__)


class TenantWork(Protocol):
    """Work of one organization."""

    @property
    def tenant_id(self) -> UUID: ...


W = TypeVar("W", bound=TenantWork)


class QueueRunner(Generic[W]):
    """Claims work of a queue in the database, and runs many pieces of it concurrently. Subclasses define the queue and
    what is done with a piece of its work."""

    #: maximum number of pieces that run at the same time, in total and of one organization. The second limit prevents
    #: an organization with many unavailable receivers from delaying other organizations.
    max_concurrent: ClassVar[int]
    max_concurrent_per_tenant: ClassVar[int]
    #: maximum number of pieces that one query claims
    claimed_per_query: ClassVar[int] = 32
    poll_interval_seconds: ClassVar[float]
    #: time limit for pieces in progress when the process stops
    stop_timeout_seconds: ClassVar[float]
    #: number of database connections that the work uses at the same time; the others of the pool stay free for jobs
    max_connections: ClassVar[int] = 1
    #: the log event for a piece that raised an error, most likely the database's
    failure_event: ClassVar[str]

    def __init__(self, tools: Tools) -> None:
        self.tools: Final = tools
        #: the pieces in progress
        self.running: Final[dict[asyncio.Task[None], W]] = {}
        self.connections: Final = asyncio.Semaphore(self.max_connections)
        self.is_stopping = False

    async def claim(self, limit: int, busy_tenants: Sequence[UUID]) -> Sequence[W]:
        """Claim at most `limit` pieces of the queue, none of them of a busy organization."""
        raise NotImplementedError

    async def work(self, piece: W) -> None:
        raise NotImplementedError

    def log_fields(self, piece: W) -> Mapping[str, str]:
        """Return the fields with which the log names a piece."""
        raise NotImplementedError

    async def give_back(self, interrupted: Sequence[W]) -> None:
        """Return to the queue the pieces that were cancelled when the process stopped."""

    async def run(self) -> None:
        """Run until cancelled. Raises the database's errors, after which the caller calls this method again."""
        try:
            while True:
                if await self.take() < self.claimed_per_query:
                    await asyncio.sleep(self.poll_interval_seconds)
        finally:
            await self._stop()

    async def take(self) -> int:
        """Claim and start waiting work, within the limits. Returns the number of pieces."""
        limit = min(self.claimed_per_query, self.max_concurrent - len(self.running))
        if limit <= 0:
            return 0
        counts = Counter(piece.tenant_id for piece in self.running.values())
        busy = [tenant for tenant, count in counts.items() if count >= self.max_concurrent_per_tenant]
        pieces = await self.claim(limit, busy)
        for piece in pieces:
            task = asyncio.create_task(self._run_piece(piece))
            self.running[task] = piece
            task.add_done_callback(self.running.pop)
        return len(pieces)

    async def drain(self) -> None:
        """Wait until all pieces in progress are done."""
        await asyncio.gather(*self.running)

    async def _run_piece(self, piece: W) -> None:
        try:
            await self.work(piece)
        except Exception as error:
            log.warning(self.failure_event, **self.log_fields(piece), reason=type(error).__name__)

    async def _stop(self) -> None:
        self.is_stopping = True
        if self.running and self.stop_timeout_seconds:
            await asyncio.wait(self.running, timeout=self.stop_timeout_seconds)
        interrupted = dict(self.running)
        for task in interrupted:
            task.cancel()
        await asyncio.gather(*interrupted, return_exceptions=True)
        if interrupted:
            await self.give_back(list(interrupted.values()))
