"""What outposts say that they have in force, and with which certificate: written together, twice a second.

An outpost says it with each question for the next bundle (`If-None-Match`), so the moment that it asks is the moment
from which a change is known to hold there. A version that there has not been confirms nothing: it is of a platform that
was set back since.
"""

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.foundation.metrics import Gauge
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.uploads import Confirmed

log = structlog.get_logger(__name__)

_PAUSE: Final = 0.5
#: Seconds after which an outpost that says the same is written as seen again.
_AGAIN: Final = 30.0
#: Seconds after which one that says nothing has no figure here any more: it asks another worker, or none.
_SILENT: Final = 600.0
#: Of more than so many at once the rest says it again with the next question.
_MOST: Final = 5_000

_ROWS: Final = (
    "(SELECT tenant_id, outpost_id, at, serial, ends, CASE WHEN said <= revision THEN said ELSE 0 END AS version"
    " FROM revision_head, unnest(CAST(:tenants AS uuid[]), CAST(:outposts AS uuid[]), CAST(:versions AS bigint[]),"
    " CAST(:ats AS timestamptz[]), CAST(:serials AS text[]), CAST(:ends AS timestamptz[]))"
    " AS s (tenant_id, outpost_id, said, at, serial, ends)) AS t"
)
_NODES: Final = text(
    "INSERT INTO outpost_nodes (tenant_id, outpost_id, version, seen_at,"  # noqa: S608 - our own words
    " certificate_serial, certificate_ends)"
    " SELECT t.tenant_id, outpost_id, t.version, at, serial, ends FROM "
    + _ROWS
    + " JOIN tenants ON tenants.id = t.tenant_id AND deleted_at IS NULL ORDER BY 1, 2"
    " ON CONFLICT (tenant_id, outpost_id) DO UPDATE SET version = excluded.version, seen_at = excluded.seen_at,"
    " certificate_serial = excluded.certificate_serial, certificate_ends = excluded.certificate_ends"
    " WHERE outpost_nodes.seen_at < excluded.seen_at"
)
_VERSIONS: Final = text(
    "INSERT INTO outpost_confirmations (tenant_id, outpost_id, version, at)"  # noqa: S608
    " SELECT t.tenant_id, outpost_id, t.version, at FROM "
    + _ROWS
    + " JOIN tenants ON tenants.id = t.tenant_id AND deleted_at IS NULL"
    " WHERE t.version > 0 ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING"
)


class Confirmations:
    """One worker's. Nothing waits for it, and a database that is away costs what was not written yet, which is said
    again with the next question."""

    def __init__(self, database: Database, certificates: Gauge) -> None:
        self._database = database
        self._certificates = certificates
        self._last: dict[UUID, Confirmed] = {}
        self._waiting: list[Confirmed] = []
        self._task: asyncio.Task[None] | None = None

    def told(self, said: Confirmed) -> None:
        """From a request: costs no query."""
        last = self._last.get(said.outpost_id)
        if (
            last is not None
            and said.at - last.at < _AGAIN
            and (said.version, said.serial) == (last.version, last.serial)
        ):
            return
        if len(self._waiting) >= _MOST:
            return
        self._last[said.outpost_id] = said
        self._certificates.read(lambda: said.ends, (str(said.outpost_id),))
        self._waiting.append(said)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write(), name="outposts' confirmations")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _write(self) -> None:
        while self._waiting:
            await asyncio.sleep(_PAUSE)
            said, self._waiting = self._waiting, []
            self._forget(time.time() - _SILENT)
            try:
                await self._store(said)
            except (SQLAlchemyError, OSError) as error:
                log.warning("outposts.confirmations_not_written", reason=type(error).__name__)
                for each in said:
                    self._last.pop(each.outpost_id, None)

    async def _store(self, said: list[Confirmed]) -> None:
        latest = {each.outpost_id: each for each in said}
        async with self._database.service() as session:
            await session.execute(_NODES, _columns(list(latest.values())))
            await session.execute(_VERSIONS, _columns(said))
            await session.commit()

    def _forget(self, before: float) -> None:
        for outpost_id in [each.outpost_id for each in self._last.values() if each.at < before]:
            del self._last[outpost_id]
            self._certificates.sources.pop((str(outpost_id),), None)


def _columns(said: list[Confirmed]) -> dict[str, list[object]]:
    return {
        "tenants": [each.tenant_id for each in said],
        "outposts": [each.outpost_id for each in said],
        "versions": [each.version for each in said],
        "ats": [datetime.fromtimestamp(each.at, UTC) for each in said],
        "serials": [each.serial for each in said],
        "ends": [datetime.fromtimestamp(each.ends, UTC) for each in said],
    }
