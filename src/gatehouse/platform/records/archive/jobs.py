"""Runs the archiver for each organization by its own schedule, one organization after the other, on one machine at a
time.
"""

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import structlog
from croniter import croniter
from sqlalchemy import text

from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.records.archive.archiver import Archiver
from gatehouse.platform.records.archive.storage.places import archive_storage
from gatehouse.platform.records.archive.storage.writer import ArchiverRunning, Stopped
from gatehouse.platform.records.hot import read_retention_policy

log = structlog.get_logger(__name__)

_TENANTS: Final = text(
    "SELECT t.id, t.timezone, t.retention_policy, r.at, EXISTS ("
    "SELECT FROM archive_forgets f WHERE f.tenant_id = t.id"
    " AND NOT EXISTS (SELECT FROM legal_holds h WHERE h.tenant_id = t.id)) AS forgetting"
    " FROM tenants t LEFT JOIN archive_runs r ON r.tenant_id = t.id ORDER BY r.at NULLS FIRST, t.id"
)
_FAILING: Final = text("SELECT count(*) FROM archive_runs WHERE status = 'failed'")
#: An organization that was never archived is due only if its schedule had a run time within this period.
_FIRST_RUN_WINDOW: Final = timedelta(minutes=10)


@JOBS.scheduled("archive.archiver", every_seconds=60)
async def archive(tools: Tools) -> None:
    """Run the archiver for the organizations that are due."""
    now = datetime.fromtimestamp(tools.clock.now(), UTC)
    async with tools.database.service() as session:
        tenants = (await session.execute(_TENANTS)).all()
    # Runs in a thread, because the evaluation of many schedules takes long.
    due = await asyncio.to_thread(lambda: [row.id for row in tenants if is_due(row, now)])
    forgetting = [row.id for row in tenants if row.forgetting and row.id not in due]
    if due or forgetting:
        stop = threading.Event()
        try:
            work = partial(
                run, tools.settings, tools.database.url, tools.sealer, due, forgetting=forgetting, now=now, stop=stop
            )
            await asyncio.to_thread(work)
        except asyncio.CancelledError:
            stop.set()
            raise


class ArchiverFailures(msgspec.Struct):
    """The last measurement of this process: the number of organizations whose last run of the archiver failed."""

    organizations: float = 0.0

    async def measure(self, tools: Tools) -> None:
        """Take a new measurement."""
        async with tools.database.service() as session:
            self.organizations = float((await session.execute(_FAILING)).scalar_one())


def is_due(row: Any, now: datetime) -> bool:
    """Return whether the schedule of the tenant had a run time since its last run (`at`). `row` is a row of
    `_TENANTS`."""
    zone = ZoneInfo(row.timezone)
    since = (row.at or now - _FIRST_RUN_WINDOW).astimezone(zone)
    schedule = read_retention_policy(row.retention_policy).archiver_schedule
    return bool(croniter(schedule, since).get_next(datetime) <= now.astimezone(zone))


def run(
    settings: Settings,
    url: str,
    sealer: Sealer,
    tenants: Sequence[UUID],
    *,
    forgetting: Sequence[UUID] = (),
    now: datetime | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Archive the rows of `tenants`, and remove anonymized people from the archives of `forgetting`.

    Returns the number of archived rows. The failure of one organization is logged and shown in its status, and the
    other organizations continue. Raises `BadSettings` and `psycopg.Error`. Without `stop` (outside a job), also raises
    `ArchiverRunning`."""
    scratch: Path = settings.gatehouse_home / "archive-unfinished"
    now = now or datetime.now(UTC)
    rows = 0
    try:
        archiver = Archiver(url, archive_storage(settings), sealer, scratch, now=now, stop=stop)
    except ArchiverRunning:
        if stop is None:
            raise
        return 0
    try:
        for tenant_id in (*tenants, *forgetting):
            try:
                if tenant_id in tenants:
                    rows += archiver.run(tenant_id)
                else:
                    archiver.forget(tenant_id)
            except Stopped:
                return rows
            except Exception as error:
                if archiver.connection.closed:
                    raise
                reason = f"{type(error).__name__}: {error}".split("\n", 1)[0][:300]
                log.warning("archive.failed", tenant_id=str(tenant_id), reason=reason)
        archiver.drop_months()
    finally:
        archiver.close()
    return rows
