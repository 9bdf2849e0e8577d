"""Stores the policy versions and certificates that outposts confirm, in batches twice a second.

An outpost confirms its version with each request for the next bundle (`If-None-Match`). So a change is active at the
outpost from the time of that request. A version later than the platform's revision is ignored, because it comes from
before the restore of a backup.
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
from gatehouse.platform.live.outpost_records import OutpostConfirmation

log = structlog.get_logger(__name__)

_WRITE_INTERVAL_SECONDS: Final = 0.5
#: Time after which an unchanged confirmation is written again, to show that the outpost is alive.
_REFRESH_INTERVAL_SECONDS: Final = 30.0
#: Time without a request after which the worker drops the outpost's metric. The outpost then calls another worker, or
#: none.
_SILENCE_TIMEOUT_SECONDS: Final = 600.0
#: Maximum number of confirmations in the queue. Further ones are dropped; the outpost repeats them with its next
#: request.
_MAX_PENDING: Final = 5_000

_ROWS: Final = (
    "(SELECT tenant_id, outpost_id, at, serial, ends,"
    " CASE WHEN reported <= revision THEN reported ELSE 0 END AS version"
    " FROM revision_head, unnest(CAST(:tenants AS uuid[]), CAST(:outposts AS uuid[]), CAST(:versions AS bigint[]),"
    " CAST(:ats AS timestamptz[]), CAST(:serials AS text[]), CAST(:ends AS timestamptz[]))"
    " AS s (tenant_id, outpost_id, reported, at, serial, ends)) AS t"
)
_NODES: Final = text(
    "INSERT INTO outpost_nodes (tenant_id, outpost_id, version, seen_at,"  # noqa: S608 - constants
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
    """The confirmations that one worker receives. No request waits for a write. If the database is unreachable, pending
    confirmations are dropped, and the outposts repeat them with their next requests."""

    def __init__(self, database: Database, certificates: Gauge) -> None:
        self._database = database
        self._certificates = certificates
        self._last: dict[UUID, OutpostConfirmation] = {}
        self._waiting: list[OutpostConfirmation] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, confirmation: OutpostConfirmation) -> None:
        """Queue a confirmation. Runs no query."""
        last = self._last.get(confirmation.outpost_id)
        if (
            last is not None
            and confirmation.at - last.at < _REFRESH_INTERVAL_SECONDS
            and (confirmation.version, confirmation.serial) == (last.version, last.serial)
        ):
            return
        if len(self._waiting) >= _MAX_PENDING:
            return
        self._last[confirmation.outpost_id] = confirmation
        self._certificates.read(lambda: confirmation.ends, (str(confirmation.outpost_id),))
        self._waiting.append(confirmation)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write(), name="outposts' confirmations")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _write(self) -> None:
        while self._waiting:
            await asyncio.sleep(_WRITE_INTERVAL_SECONDS)
            confirmations, self._waiting = self._waiting, []
            self._drop_silent(time.time() - _SILENCE_TIMEOUT_SECONDS)
            try:
                await self._store(confirmations)
            except (SQLAlchemyError, OSError) as error:
                log.warning("outposts.confirmations_not_written", reason=type(error).__name__)
                for confirmation in confirmations:
                    self._last.pop(confirmation.outpost_id, None)

    async def _store(self, confirmations: list[OutpostConfirmation]) -> None:
        latest = {confirmation.outpost_id: confirmation for confirmation in confirmations}
        async with self._database.service() as session:
            await session.execute(_NODES, _columns(list(latest.values())))
            await session.execute(_VERSIONS, _columns(confirmations))
            await session.commit()

    def _drop_silent(self, before: float) -> None:
        silent = [confirmation.outpost_id for confirmation in self._last.values() if confirmation.at < before]
        for outpost_id in silent:
            del self._last[outpost_id]
            self._certificates.sources.pop((str(outpost_id),), None)


def _columns(confirmations: list[OutpostConfirmation]) -> dict[str, list[object]]:
    return {
        "tenants": [confirmation.tenant_id for confirmation in confirmations],
        "outposts": [confirmation.outpost_id for confirmation in confirmations],
        "versions": [confirmation.version for confirmation in confirmations],
        "ats": [datetime.fromtimestamp(confirmation.at, UTC) for confirmation in confirmations],
        "serials": [confirmation.serial for confirmation in confirmations],
        "ends": [datetime.fromtimestamp(confirmation.ends, UTC) for confirmation in confirmations],
    }
