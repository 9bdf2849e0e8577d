"""Shares measured latencies of models between workers. Each worker writes its reports as rows, which the other workers
read.

While the database is unreachable, each worker uses only its own measurements.
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

from gatehouse.engine.measures.latency import WINDOW_SECONDS, Latencies
from gatehouse.foundation.storage.database import Database

log = structlog.get_logger(__name__)

REPORT_INTERVAL_SECONDS: Final = 10.0
#: Maximum time by which a report may be committed later than reports with higher ids.
_COMMIT_DELAY_SECONDS: Final = 30.0
_DATABASE_TIMEOUT_SECONDS: Final = 5.0
_DATABASE_ERRORS: Final = (SQLAlchemyError, psycopg.Error, OSError, TimeoutError)

_INSERT_REPORT: Final = text("INSERT INTO latency_reports (node, body) VALUES (:node, :body)")
_SELECT_REPORTS: Final = text(
    "SELECT id, EXTRACT(EPOCH FROM clock_timestamp() - at)::float8 AS age, body FROM latency_reports"
    " WHERE at > clock_timestamp() - make_interval(secs => :seconds) AND node <> :node ORDER BY id"
)


class SharedLatencies:
    """The exchange of latencies by one worker. `start` reads the recent reports of the other workers."""

    def __init__(self, database: Database, latencies: Latencies, node: UUID) -> None:
        self._database = database
        self._latencies = latencies
        self._node = node
        self._read_ids: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._failure_logged = False

    async def start(self) -> None:
        await self._round(WINDOW_SECONDS)
        self._task = asyncio.create_task(self._run(), name="latencies")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def exchange(self) -> None:
        """Write this worker's report, and read the reports of the other workers, now."""
        await self._round(REPORT_INTERVAL_SECONDS + _COMMIT_DELAY_SECONDS)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(REPORT_INTERVAL_SECONDS)
            await self._round(REPORT_INTERVAL_SECONDS + _COMMIT_DELAY_SECONDS)

    async def _round(self, seconds: float) -> None:
        body = self._latencies.report()
        try:
            async with asyncio.timeout(_DATABASE_TIMEOUT_SECONDS):
                await self._write_and_read(body, seconds)
            self._failure_logged = False
        except _DATABASE_ERRORS as error:
            if not self._failure_logged:
                log.warning("latencies.database_away", reason=type(error).__name__)
                self._failure_logged = True
        except Exception:
            log.exception("latencies.fault")
        self._latencies.settle()

    async def _write_and_read(self, body: bytes | None, seconds: float) -> None:
        async with self._database.service() as session:
            if body is not None:
                await session.execute(_INSERT_REPORT, {"node": self._node, "body": body})
            reports = (await session.execute(_SELECT_REPORTS, {"node": self._node, "seconds": seconds})).all()
            await session.commit()
        for report_id, age_seconds, report in reports:
            if report_id not in self._read_ids:
                # A worker of a later version may write reports that this version cannot decode.
                with contextlib.suppress(msgspec.MsgspecError):
                    self._latencies.take(report, age_seconds)
        self._read_ids = {report_id for report_id, _, _ in reports}
