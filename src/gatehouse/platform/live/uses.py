"""Records the times of last use of API keys and SCIM tokens. Each worker collects them in memory and writes them to the
rows in batches.

No request waits for a write. Each worker writes a row at most once a minute, so the time in a row is at most about a
minute old. A worker that is killed loses the uses of about its last minute.
"""

import asyncio
from typing import Final
from uuid import UUID

import psycopg
import structlog
from sqlalchemy import TextClause, text
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.foundation.clock import Clock
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import cancel_all

log = structlog.get_logger(__name__)

FLUSH_SECONDS: Final = 5.0
#: Minimum interval between writes of the same row by the same worker.
ROW_INTERVAL_SECONDS: Final = 60.0
#: Time after which a use that could not be written is dropped.
_GIVE_UP_SECONDS: Final = 600.0
_FLUSH_TIMEOUT_SECONDS: Final = 10.0
_DATABASE_ERRORS: Final = (SQLAlchemyError, psycopg.Error, OSError, TimeoutError)


def note_uses_sql(table: str, column: str, *, ids: str, seconds: str) -> str:
    """Return a statement that writes times of use that are later than the row's time, and returns the ids of the
    processed rows. It skips rows that another transaction has locked, so that neither transaction waits for the other.
    `ids` and `seconds` are the placeholders of two arrays: ids, and Unix times in the same order.
    """
    return (
        f"WITH seen AS (SELECT * FROM unnest(CAST({ids} AS uuid[]), CAST({seconds} AS float8[])) AS s (id, seconds)),"  # noqa: S608
        f" free AS (SELECT target.id FROM {table} target WHERE target.id IN (SELECT id FROM seen)"
        " ORDER BY target.id FOR UPDATE SKIP LOCKED),"
        f" written AS (UPDATE {table} target SET {column} = to_timestamp(seen.seconds) FROM seen JOIN free USING (id)"
        f" WHERE target.id = seen.id AND (target.{column} IS NULL OR target.{column} < to_timestamp(seen.seconds)))"
        " SELECT id FROM free"
    )


_STATEMENTS: Final[dict[str, TextClause]] = {
    "api_keys": text(note_uses_sql("api_keys", "last_used", ids=":ids", seconds=":seconds")),
    "scim_tokens": text(note_uses_sql("scim_tokens", "last_used_at", ids=":ids", seconds=":seconds")),
}


class RecentUses:
    """Unix times of the uses that are not written yet, by the id of the credential. Only uses of existing credentials
    are recorded."""

    def __init__(self) -> None:
        self.api_keys: dict[UUID, float] = {}
        self.scim_tokens: dict[UUID, float] = {}


class UseWriter:
    """Writes the recent uses of one worker. `stop` writes the remaining ones."""

    def __init__(self, database: Database, recent: RecentUses, clock: Clock) -> None:
        self._database = database
        self._recent = recent
        self._clock = clock
        #: Unix time of the last write of each row that was written within `ROW_INTERVAL_SECONDS`
        self._written: dict[UUID, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="credential uses")

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_all(self._task)
        self._written.clear()
        await self._try_flush()

    async def flush(self) -> None:
        """Write every use whose row was not written by this worker within the last minute. Raises errors of the
        database."""
        now = self._clock.now()
        self._written = {id_: at for id_, at in self._written.items() if now - ROW_INTERVAL_SECONDS < at <= now}
        for table, statement in _STATEMENTS.items():
            pending: dict[UUID, float] = getattr(self._recent, table)
            due = {id_: at for id_, at in pending.items() if id_ not in self._written}
            if not due:
                continue
            async with asyncio.timeout(_FLUSH_TIMEOUT_SECONDS), self._database.service() as session:
                values = {"ids": list(due), "seconds": list(due.values())}
                done = set((await session.execute(statement, values)).scalars())
                await session.commit()
            for id_, at in due.items():
                if id_ in done:
                    self._written[id_] = now
                # A credential that was used again in the meantime waits for the next write. The use of a deleted
                # credential is dropped after a while.
                if pending.get(id_) == at and (id_ in done or now - at > _GIVE_UP_SECONDS):
                    del pending[id_]

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self._try_flush()

    async def _try_flush(self) -> None:
        try:
            await self.flush()
            self._failing = False
        except _DATABASE_ERRORS as error:
            if not self._failing:
                log.warning("credential_uses.not_written", reason=type(error).__name__)
                self._failing = True
        except Exception:
            log.exception("credential_uses.fault")
