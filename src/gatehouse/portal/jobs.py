"""Jobs: what has to be done elsewhere, queued in the transaction of the change that wants it, tried again for hours.

    @job("org_provision", gave_up=failed)
    async def provision(tools: Tools, org_id: OrgId | None) -> None: ...

    await queue(change.session, provision, org_id)

A job carries no orders: it reads what is so when it runs, and does it so that once more does no harm. So one that waits
serves all that want it. Jobs of one organization run one after the other. Whoever runs one has a lease on it: of a
killed process, another takes it up when that is over. Whose failure nobody is told of (`gave_up`) is owed to the
platform: it is tried again until that has answered.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from uuid import UUID

import msgspec
import structlog
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.away import DATABASE_AWAY
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import wanted
from gatehouse.portal.identity import OrgId
from gatehouse.portal.metrics import Figures
from gatehouse.portal.platform import NotConfigured, PlatformAway, PlatformClient, PlatformFailed
from gatehouse.portal.settings import PortalSettings

log = structlog.get_logger(__name__)

#: 2 s, 4 s, ... 34 min, then an hour each: after ten hours in all, who wants to be told is.
ATTEMPTS: Final = 21
_FIRST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 3600.0
#: Longer than an attempt may take, which is cut off before.
_LEASE_SECONDS: Final = 90
_ATTEMPT_SECONDS: Final = 60.0
_WORKERS: Final = 4
#: Seconds between looks where nothing is told: what another process has queued, and what is due by the clock.
_LOOK_SECONDS: Final = 1.0


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs and duties can reach."""

    settings: PortalSettings
    database: Database
    platform: PlatformClient
    figures: Figures


Work: TypeAlias = Callable[[Tools, OrgId | None], Awaitable[None]]


class Job(msgspec.Struct, frozen=True):
    kind: str
    work: Work
    #: told that the platform refuses, or that the last attempt has failed: in the transaction that says so, as the
    #: service role. Without it there is no last attempt.
    gave_up: Callable[[AsyncSession, OrgId | None, PlatformFailed], Awaitable[None]] | None


_jobs: Final[dict[str, Job]] = {}
_kinds: Final[dict[Work, str]] = {}


def job(
    kind: str, *, gave_up: Callable[[AsyncSession, OrgId | None, PlatformFailed], Awaitable[None]] | None = None
) -> Callable[[Work], Work]:
    """Registers what does jobs of this kind. Its module is named in `work.MODULES`."""

    def register(work: Work) -> Work:
        _jobs[kind] = Job(kind, work, gave_up)
        _kinds[work] = kind
        return work

    return register


class Duty(msgspec.Struct, frozen=True):
    """What is done again and again in every process: it must bear company."""

    name: str
    seconds: float
    work: Callable[[Tools], Awaitable[None]]


#: Of the modules that are imported.
duties: Final[list[Duty]] = []


Repeated: TypeAlias = Callable[[Tools], Awaitable[None]]


def duty(name: str, seconds: float) -> Callable[[Repeated], Repeated]:
    """Registers what is done every so many seconds. Its module is named in `work.MODULES`."""

    def register(work: Repeated) -> Repeated:
        duties.append(Duty(name, seconds, work))
        return work

    return register


# One that waits is brought forward, and has all its attempts again.
_QUEUE: Final = text(
    "INSERT INTO jobs (id, kind, org_id, lane) VALUES (:id, :kind, :org, :lane)"
    " ON CONFLICT (kind, lane) WHERE status = 'queued' DO UPDATE SET run_at = now(), attempts = 0, updated_at = now()"
    " RETURNING id"
)
_TAKE: Final = text(
    "UPDATE jobs SET status = 'running', attempts = attempts + 1, updated_at = now(),"
    " leased_until = now() + make_interval(secs => :lease)"
    " WHERE id = (SELECT id FROM jobs j WHERE (status = 'queued' AND run_at <= now() AND NOT EXISTS"
    " (SELECT FROM jobs r WHERE r.lane = j.lane AND r.status = 'running'))"
    " OR (status = 'running' AND leased_until < now())"
    " ORDER BY run_at, id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id, kind, org_id, attempts"
)
_END: Final = text(
    "UPDATE jobs SET status = :status, error = :error, leased_until = NULL, updated_at = now()"
    " WHERE id = :id AND status = 'running'"
)
# Where another was queued meanwhile, that one does it: this one is over.
_AGAIN: Final = text(
    "UPDATE jobs j SET status = CASE WHEN EXISTS (SELECT FROM jobs q WHERE q.kind = j.kind AND q.lane = j.lane"
    " AND q.status = 'queued') THEN 'done' ELSE 'queued' END, error = :error, leased_until = NULL, updated_at = now(),"
    " run_at = now() + make_interval(secs => :pause), attempts = attempts - :uncounted"
    " WHERE id = :id AND status = 'running'"
)


async def queue(session: AsyncSession, work: Work, org_id: OrgId | None) -> UUID:
    """Queues a job in the session's transaction: it exists when, and only when, that is committed. Returns its id."""
    kind = _kinds[work]
    values = {"id": new_id(), "kind": kind, "org": org_id, "lane": str(org_id or kind)}
    return UUID(str((await session.execute(_QUEUE, values)).scalar_one()))


class Taken(msgspec.Struct, frozen=True):
    id: UUID
    job: Job
    org_id: OrgId | None
    attempts: int


class Worker:
    """One a process. `look` says that there may be something to do."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._news = asyncio.Event()

    def look(self) -> None:
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled. A dead database is waited for."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        told = False
        while wanted():
            try:
                if await self._one():
                    continue
                told = False
            except DATABASE_AWAY as error:
                if not told:
                    log.warning("jobs.interrupted", reason=type(error).__name__)
                    told = True
            except Exception:
                log.exception("jobs.fault")
            self._news.clear()
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                pass

    async def _one(self) -> bool:
        """Whether there was one to do."""
        taken = await self._take()
        if taken is None:
            return False
        until = time.monotonic() + _LEASE_SECONDS
        try:
            failed = await self._attempt(taken)
        except asyncio.CancelledError:
            # This process ends: another goes on at once, without waiting for the lease.
            await asyncio.shield(self._again(taken, None, 0.0, uncounted=1))
            raise
        while True:
            try:
                await (self._done(taken) if failed is None else self._failed(taken, failed))
            except DATABASE_AWAY:
                # As long as it is said to run, none of its lane does.
                if time.monotonic() + _LOOK_SECONDS >= until:
                    raise
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                return True

    async def _attempt(self, taken: Taken) -> PlatformFailed | None:
        """None: it is done."""
        try:
            async with asyncio.timeout(_ATTEMPT_SECONDS):
                await taken.job.work(self._tools, taken.org_id)
        except PlatformFailed as failed:
            return failed
        except TimeoutError:
            return PlatformAway("it takes too long")
        except Exception as error:
            log.exception("jobs.fault", kind=taken.job.kind)
            return PlatformAway(type(error).__name__)
        return None

    async def _done(self, taken: Taken) -> None:
        await self._execute(_END, {"id": taken.id, "status": "done", "error": None})
        self._count(taken, "done")

    async def _take(self) -> Taken | None:
        try:
            async with self._tools.database.service() as session:
                row = (await session.execute(_TAKE, {"lease": _LEASE_SECONDS})).first()
                await session.commit()
        except IntegrityError:
            # Somebody else has just taken another one of that organization.
            return None
        return None if row is None else Taken(row.id, _jobs[row.kind], row.org_id, row.attempts)

    async def _failed(self, taken: Taken, failed: PlatformFailed) -> None:
        if isinstance(failed, PlatformAway):
            again = taken.job.gave_up is None or taken.attempts < ATTEMPTS
        else:
            # An address that is taken out of the settings may come back, too.
            again = taken.job.gave_up is None and isinstance(failed, NotConfigured)
        if again:
            pause = min(_FIRST_PAUSE * 2 ** min(taken.attempts - 1, ATTEMPTS), _LONGEST_PAUSE)
            # Apart from each other: a platform that comes back is not asked for everything in one moment.
            await self._again(taken, str(failed), pause * random.uniform(0.8, 1.0))  # noqa: S311
            self._count(taken, "again")
            return
        log.warning("job.failed", kind=taken.job.kind, org_id=str(taken.org_id), reason=str(failed))
        async with self._tools.database.service() as session:
            ended = await session.execute(_END, {"id": taken.id, "status": "failed", "error": str(failed)})
            # Not a second time, where the first one's commit had no answer.
            if taken.job.gave_up is not None and ended.rowcount:  # type: ignore[attr-defined]
                await taken.job.gave_up(session, taken.org_id, failed)
            await session.commit()
        self._count(taken, "failed")

    async def _again(self, taken: Taken, error: str | None, pause: float, *, uncounted: int = 0) -> None:
        await self._execute(_AGAIN, {"id": taken.id, "error": error, "pause": pause, "uncounted": uncounted})

    async def _execute(self, statement: object, values: dict[str, object]) -> None:
        async with self._tools.database.service() as session:
            await session.execute(statement, values)  # type: ignore[call-overload]
            await session.commit()

    def _count(self, taken: Taken, result: str) -> None:
        self._tools.figures.jobs.add((taken.job.kind, result))
