"""The engine's latencies, shared: each worker's report is a row that the others read, every few seconds.

The database may be away: then each worker goes by what it sees itself.
"""

import asyncio
import contextlib
from typing import Final
from uuid import UUID

import msgspec
import psycopg
import structlog
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.engine.latency import WINDOW, Latencies
from gatehouse.foundation.storage.database import Database

log = structlog.get_logger(__name__)

#: Seconds between two reports.
EVERY: Final = 10.0
#: Seconds for which a report may be committed later than others with higher numbers.
_LATE: Final = 30.0
_PATIENCE: Final = 5.0
_DATABASE_ERRORS: Final = (SQLAlchemyError, psycopg.Error, OSError, TimeoutError)

_TELL: Final = text("INSERT INTO latency_reports (node, body) VALUES (:node, :body)")
_HEAR: Final = text(
    "SELECT id, EXTRACT(EPOCH FROM clock_timestamp() - at)::float8 AS age, body FROM latency_reports"
    " WHERE at > clock_timestamp() - make_interval(secs => :seconds) AND node <> :node ORDER BY id"
)


class SharedLatencies:
    """One worker's. `start` reads what there is; `stop` hands on the rest."""

    def __init__(self, database: Database, latencies: Latencies, node: UUID) -> None:
        self._database = database
        self._latencies = latencies
        self._node = node
        self._read: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._told = False

    async def start(self) -> None:
        await self._round(WINDOW)
        self._task = asyncio.create_task(self._keep(), name="latencies")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def exchange(self) -> None:
        """Once, now: what this worker has seen for the others, what they have seen for this one."""
        await self._round(EVERY + _LATE)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self._round(EVERY + _LATE)

    async def _round(self, seconds: float) -> None:
        body = self._latencies.report()
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._exchanged(body, seconds)
            self._told = False
        except _DATABASE_ERRORS as error:
            if not self._told:
                log.warning("latencies.database_away", reason=type(error).__name__)
                self._told = True
        except Exception:
            log.exception("latencies.fault")
        self._latencies.settle()

    async def _exchanged(self, body: bytes | None, seconds: float) -> None:
        async with self._database.service() as session:
            if body is not None:
                await session.execute(_TELL, {"node": self._node, "body": body})
            heard = (await session.execute(_HEAR, {"node": self._node, "seconds": seconds})).all()
            await session.commit()
        for number, age, told in heard:
            if number not in self._read:
                with contextlib.suppress(msgspec.MsgspecError):
                    # Of a later version, maybe.
                    self._latencies.take(told, age)
        self._read = {number for number, _, _ in heard}
