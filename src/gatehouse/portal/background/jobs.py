"""Jobs: work at the platform, queued in the transaction of the change that needs it, and retried with backoff for
hours.

    @job("org_provision", on_failure=failed)
    async def provision(context: JobContext, org_id: OrgId | None) -> None: ...

    await queue(change.session, provision, org_id)

A job has no parameters besides the organization: it reads the present state when it runs, and is idempotent. So one
queued job serves every change that needs it. Jobs of one organization run one after the other. A worker has a lease on
the job that it runs: after the lease of a killed process ends, another worker runs the job. A job without `on_failure`
is retried until the platform has accepted it.
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
from gatehouse.foundation.storage.away import DATABASE_UNAVAILABLE_ERRORS
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import is_running
from gatehouse.portal.identity import OrgId
from gatehouse.portal.metrics import PortalMetrics
from gatehouse.portal.platform_link.client import (
    PlatformClient,
    PlatformError,
    PlatformNotConfigured,
    PortalPlatformUnavailable,
)
from gatehouse.portal.settings import PortalSettings

log = structlog.get_logger(__name__)

#: Attempts of a job: delays of 2 s, 4 s, ... 34 min, then an hour each, ten hours in all, then `on_failure`.
ATTEMPTS: Final = 21
_MIN_RETRY_SECONDS: Final = 2.0
_MAX_RETRY_SECONDS: Final = 3600.0
#: Longer than `_ATTEMPT_TIMEOUT_SECONDS`, so that the lease outlives every attempt.
_LEASE_SECONDS: Final = 90
_ATTEMPT_TIMEOUT_SECONDS: Final = 60.0
_WORKERS: Final = 4
#: Seconds between two polls for jobs that another process queued, or that are due.
_POLL_INTERVAL_SECONDS: Final = 1.0


class JobContext(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that jobs and periodic tasks may use."""

    settings: PortalSettings
    database: Database
    platform: PlatformClient
    figures: PortalMetrics


JobWork: TypeAlias = Callable[[JobContext, OrgId | None], Awaitable[None]]


class PortalJob(msgspec.Struct, frozen=True):
    kind: str
    work: JobWork
    #: Called when the platform refuses or the last attempt fails, in the transaction that ends the job, as the service
    #: role. A job without it is retried for ever.
    on_failure: Callable[[AsyncSession, OrgId | None, PlatformError], Awaitable[None]] | None


_jobs: Final[dict[str, PortalJob]] = {}
_kinds: Final[dict[JobWork, str]] = {}


def job(
    kind: str, *, on_failure: Callable[[AsyncSession, OrgId | None, PlatformError], Awaitable[None]] | None = None
) -> Callable[[JobWork], JobWork]:
    """Registers the function for jobs of this kind. Its module is listed in `work.MODULES`."""

    def register(work: JobWork) -> JobWork:
        _jobs[kind] = PortalJob(kind, work, on_failure)
        _kinds[work] = kind
        return work

    return register


class PeriodicTask(msgspec.Struct, frozen=True):
    """Work that every process repeats: it must be safe to run in several processes at once."""

    name: str
    seconds: float
    work: Callable[[JobContext], Awaitable[None]]


#: Tasks of the imported modules.
periodic_tasks: Final[list[PeriodicTask]] = []


PeriodicWork: TypeAlias = Callable[[JobContext], Awaitable[None]]


def periodic(name: str, seconds: float) -> Callable[[PeriodicWork], PeriodicWork]:
    """Registers the function to run every so many seconds. Its module is listed in `work.MODULES`."""

    def register(work: PeriodicWork) -> PeriodicWork:
        periodic_tasks.append(PeriodicTask(name, seconds, work))
        return work

    return register


# A queued job becomes due now, and gets all its attempts again.
_QUEUE: Final = text(
    "INSERT INTO jobs (id, kind, org_id, lane) VALUES (:id, :kind, :org, :lane)"
    " ON CONFLICT (kind, lane) WHERE status = 'queued' DO UPDATE SET run_at = now(), attempts = 0, updated_at = now()"
    " RETURNING id"
)
_LEASE_NEXT: Final = text(
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
# If another job of the same kind was queued meanwhile, this one is done.
_RETRY: Final = text(
    "UPDATE jobs j SET status = CASE WHEN EXISTS (SELECT FROM jobs q WHERE q.kind = j.kind AND q.lane = j.lane"
    " AND q.status = 'queued') THEN 'done' ELSE 'queued' END, error = :error, leased_until = NULL, updated_at = now(),"
    " run_at = now() + make_interval(secs => :pause), attempts = attempts - :uncounted"
    " WHERE id = :id AND status = 'running'"
)


async def queue(session: AsyncSession, work: JobWork, org_id: OrgId | None) -> UUID:
    """Queues a job in the session's transaction: it exists if, and only if, that commits. Return its id."""
    kind = _kinds[work]
    values = {"id": new_id(), "kind": kind, "org": org_id, "lane": str(org_id or kind)}
    return UUID(str((await session.execute(_QUEUE, values)).scalar_one()))


class LeasedJob(msgspec.Struct, frozen=True):
    id: UUID
    job: PortalJob
    org_id: OrgId | None
    attempts: int


class JobWorker:
    """Runs jobs in one process. `wake` makes it look for jobs at once."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._wake_event = asyncio.Event()

    def wake(self) -> None:
        self._wake_event.set()

    async def run(self) -> None:
        """Runs until it is cancelled. Waits while the database is unavailable."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        logged = False
        while is_running():
            try:
                if await self._run_next():
                    continue
                logged = False
            except DATABASE_UNAVAILABLE_ERRORS as error:
                if not logged:
                    log.warning("jobs.interrupted", reason=type(error).__name__)
                    logged = True
            except Exception:
                log.exception("jobs.fault")
            self._wake_event.clear()
            try:
                async with asyncio.timeout(_POLL_INTERVAL_SECONDS):
                    await self._wake_event.wait()
            except TimeoutError:
                pass

    async def _run_next(self) -> bool:
        """Runs the next job. Return whether there was one."""
        leased = await self._lease_next()
        if leased is None:
            return False
        lease_end = time.monotonic() + _LEASE_SECONDS
        try:
            error = await self._attempt(leased)
        except asyncio.CancelledError:
            # This process ends: another one runs the job at once, without waiting for the lease to end.
            await asyncio.shield(self._retry(leased, None, 0.0, uncounted_attempts=1))
            raise
        while True:
            try:
                await (self._done(leased) if error is None else self._failed(leased, error))
            except DATABASE_UNAVAILABLE_ERRORS:
                # Until the end is stored, the other jobs of the lane wait.
                if time.monotonic() + _POLL_INTERVAL_SECONDS >= lease_end:
                    raise
                await asyncio.sleep(_POLL_INTERVAL_SECONDS)
            else:
                return True

    async def _attempt(self, leased: LeasedJob) -> PlatformError | None:
        """Return the error of the attempt, or None if the job is done."""
        try:
            async with asyncio.timeout(_ATTEMPT_TIMEOUT_SECONDS):
                await leased.job.work(self._context, leased.org_id)
        except PlatformError as error:
            return error
        except TimeoutError:
            return PortalPlatformUnavailable(f"not done within {_ATTEMPT_TIMEOUT_SECONDS:g} s")
        except Exception as error:
            log.exception("jobs.fault", kind=leased.job.kind)
            return PortalPlatformUnavailable(type(error).__name__)
        return None

    async def _done(self, leased: LeasedJob) -> None:
        await self._execute(_END, {"id": leased.id, "status": "done", "error": None})
        self._count(leased, "done")

    async def _lease_next(self) -> LeasedJob | None:
        try:
            async with self._context.database.service() as session:
                row = (await session.execute(_LEASE_NEXT, {"lease": _LEASE_SECONDS})).first()
                await session.commit()
        except IntegrityError:
            # Another worker has just leased a job of the same lane.
            return None
        return None if row is None else LeasedJob(row.id, _jobs[row.kind], row.org_id, row.attempts)

    async def _failed(self, leased: LeasedJob, error: PlatformError) -> None:
        if isinstance(error, PortalPlatformUnavailable):
            retries = leased.job.on_failure is None or leased.attempts < ATTEMPTS
        else:
            # PLATFORM_URL, when it was removed, may be set again.
            retries = leased.job.on_failure is None and isinstance(error, PlatformNotConfigured)
        if retries:
            delay = min(_MIN_RETRY_SECONDS * 2 ** min(leased.attempts - 1, ATTEMPTS), _MAX_RETRY_SECONDS)
            # Jitter: a platform that comes back must not get all retries in one moment.
            await self._retry(leased, str(error), delay * random.uniform(0.8, 1.0))  # noqa: S311
            self._count(leased, "again")
            return
        log.warning("job.failed", kind=leased.job.kind, org_id=str(leased.org_id), reason=str(error))
        async with self._context.database.service() as session:
            ended = await session.execute(_END, {"id": leased.id, "status": "failed", "error": str(error)})
            # Not called twice, if the result of the first commit was lost.
            if leased.job.on_failure is not None and ended.rowcount:  # type: ignore[attr-defined]
                await leased.job.on_failure(session, leased.org_id, error)
            await session.commit()
        self._count(leased, "failed")

    async def _retry(self, leased: LeasedJob, error: str | None, delay: float, *, uncounted_attempts: int = 0) -> None:
        await self._execute(_RETRY, {"id": leased.id, "error": error, "pause": delay, "uncounted": uncounted_attempts})

    async def _execute(self, statement: object, values: dict[str, object]) -> None:
        async with self._context.database.service() as session:
            await session.execute(statement, values)  # type: ignore[call-overload]
            await session.commit()

    def _count(self, leased: LeasedJob, result: str) -> None:
        self._context.figures.jobs.add((leased.job.kind, result))
