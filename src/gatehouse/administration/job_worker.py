"""Runs queued and scheduled jobs in one process.

A worker has a lease on each job that it runs, and renews the lease. If a worker is killed, its lease ends and another
worker runs the job again. `updated_at` of a running job is the time at which the job was leased. Every statement that
changes the job compares this time, so that a worker that has lost its lease cannot change the job.
"""

import asyncio
import random
from collections import Counter
from datetime import datetime
from typing import Final, Generic
from uuid import UUID

import msgspec
import structlog
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.elements import TextClause

from gatehouse.administration.jobs import Context, Job, JobFault, Jobs, Schedule
from gatehouse.foundation import metrics
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.away import DATABASE_UNAVAILABLE_ERRORS
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import is_running

log = structlog.get_logger(__name__)

_MIN_RETRY_SECONDS: Final = 2.0
_MAX_RETRY_SECONDS: Final = 3600.0
#: Maximum number of times that the delay is doubled. The delay reaches its maximum before this number.
_MAX_DOUBLINGS: Final = 20
#: Seconds between two searches for jobs that are due or that another process has queued.
_POLL_INTERVAL_SECONDS: Final = 1.0

_NEXT_TIME: Final = "to_timestamp((floor((extract(epoch FROM now()) - :offset) / :every) + 1) * :every + :offset)"
# If the interval of a schedule was shortened, the new interval takes effect at once.
_SCHEDULE: Final = text(
    f"WITH earlier AS (UPDATE jobs SET run_at = least(run_at, {_NEXT_TIME})"  # noqa: S608
    " WHERE kind = :kind AND status = 'queued')"
    f" INSERT INTO jobs (id, kind, lane, run_at) SELECT :id, :kind, :kind, {_NEXT_TIME}"
    " WHERE NOT EXISTS (SELECT FROM jobs WHERE kind = :kind AND status IN ('queued', 'running'))"
    " ON CONFLICT DO NOTHING"
)
_LEASE_NEXT: Final = text(
    "UPDATE jobs SET status = 'running', attempts = attempts + 1, updated_at = now(),"
    " leased_until = now() + make_interval(secs => :lease)"
    " WHERE id = (SELECT id FROM jobs j WHERE kind = ANY(:kinds) AND (org_id = ANY(CAST(:busy AS uuid[]))) IS NOT TRUE"
    " AND (status = 'queued' AND run_at <= now()"
    " AND NOT EXISTS (SELECT FROM jobs r WHERE r.lane = j.lane AND r.status = 'running')"
    " OR status = 'running' AND leased_until < now() AND id <> ALL(CAST(:own AS uuid[])))"
    " ORDER BY run_at, id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id, kind, org_id, args, attempts, updated_at"
)
_RENEW: Final = text(
    "UPDATE jobs SET leased_until = now() + make_interval(secs => :lease)"
    " WHERE id = :id AND status = 'running' AND updated_at = :leased_at"
)
_END: Final = text(
    "UPDATE jobs SET status = :status, error = :error, leased_until = NULL, updated_at = now()"
    " WHERE id = :id AND status = 'running' AND updated_at = :leased_at"
)
# If another job of the same kind has been queued in the lane in the meantime, this job is done.
_RETRY: Final = text(
    "UPDATE jobs j SET status = CASE WHEN EXISTS (SELECT FROM jobs q WHERE q.kind = j.kind AND q.lane = j.lane"
    " AND q.status = 'queued') THEN 'done' ELSE 'queued' END, error = :error, leased_until = NULL, updated_at = now(),"
    " run_at = now() + make_interval(secs => :delay), attempts = attempts - :uncounted"
    " WHERE id = :id AND status = 'running' AND updated_at = :leased_at"
)
_SCHEDULE_NEXT: Final = text(
    "UPDATE jobs SET status = 'queued', error = :error, leased_until = NULL, updated_at = now(), attempts = 0,"  # noqa: S608
    f" run_at = {_NEXT_TIME} WHERE id = :id AND status = 'running' AND updated_at = :leased_at"
)


class LeasedJob(msgspec.Struct, frozen=True):
    """A job that this process runs."""

    id: UUID
    job: Job
    org_id: UUID | None
    args: dict[str, object]
    attempts: int
    leased_at: datetime


class JobWorker(Generic[Context]):
    """Runs up to `slots` jobs at the same time. At most half of them are of one organization, so that its jobs do not
    delay those of other organizations. `wake` starts a search for due jobs immediately.

    When the worker is stopped, jobs in progress have `grace_seconds` to end. Then they are cancelled and queued again.
    `results` counts attempts by kind and result (`done`, `again`, `failed`).

    The statements of the worker itself use the connection of the feed, because jobs can occupy all other connections
    for longer than a lease."""

    def __init__(
        self,
        jobs: Jobs[Context],
        context: Context,
        database: Database,
        *,
        slots: int,
        grace_seconds: float = 0.0,
        lease_seconds: float = 90.0,
        results: metrics.Counter | None = None,
    ) -> None:
        self._jobs = jobs
        self._context = context
        self._database = database
        self._slots = slots
        self._max_slots_per_org = max(1, slots // 2)
        self._running: dict[asyncio.Task[None], LeasedJob] = {}
        self._grace_seconds = grace_seconds
        self._lease_seconds = lease_seconds
        self._results = results
        self._wake_event = asyncio.Event()
        self._is_scheduled = False
        self._failure_logged = False

    def wake(self) -> None:
        self._wake_event.set()

    async def run(self) -> None:
        """Run until cancelled. Waits while the database is unavailable."""
        try:
            while is_running():
                self._wake_event.clear()
                leased = await self._lease_due_job() if len(self._running) < self._slots else None
                if leased is None:
                    await self._wait()
                    continue
                task = asyncio.create_task(self._run_leased(leased), name=f"job {leased.job.kind}")
                self._running[task] = leased
                task.add_done_callback(self._running.pop)
                task.add_done_callback(lambda _: self.wake())
        finally:
            await self._end()

    async def _lease_due_job(self) -> LeasedJob | None:
        """Lease and return the next due job. Return None if there is none or the database is unavailable."""
        try:
            if not self._is_scheduled:
                await self._schedule()
                self._is_scheduled = True
            leased = await self._lease_next()
            self._failure_logged = False
        except DATABASE_UNAVAILABLE_ERRORS as error:
            if not self._failure_logged:
                log.warning("jobs.interrupted", reason=type(error).__name__)
                self._failure_logged = True
        except Exception:
            log.exception("jobs.fault")
        else:
            return leased
        return None

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_POLL_INTERVAL_SECONDS):
                await self._wake_event.wait()
        except TimeoutError:
            pass

    async def _end(self) -> None:
        running = set(self._running)
        if running and self._grace_seconds:
            await asyncio.wait(running, timeout=self._grace_seconds)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _schedule(self) -> None:
        """Queue the first run of each scheduled job, unless a run is already queued."""
        async with self._database.feed() as session:
            for kind, schedule in self._jobs.scheduled_jobs():
                values = {"id": new_id(), "kind": kind, **_times(schedule)}
                await session.execute(_SCHEDULE, values)
            await session.commit()

    async def _lease_next(self) -> LeasedJob | None:
        jobs_by_org = Counter(leased.org_id for leased in self._running.values() if leased.org_id is not None)
        busy = [org_id for org_id, count in jobs_by_org.items() if count >= self._max_slots_per_org]
        # If this process was paused, its own leases may have ended. They will be renewed, so its jobs are left out.
        own = [leased.id for leased in self._running.values()]
        values = {"lease": self._lease_seconds, "kinds": list(self._jobs.kinds), "busy": busy, "own": own}
        try:
            async with self._database.feed() as session:
                row = (await session.execute(_LEASE_NEXT, values)).first()
                await session.commit()
        except IntegrityError:
            # Another worker has leased a job of the same lane in the meantime.
            return None
        if row is None:
            return None
        job = self._jobs.kinds[row.kind]
        return LeasedJob(row.id, job, row.org_id, row.args, row.attempts, row.updated_at)

    async def _run_leased(self, leased: LeasedJob) -> None:
        try:
            error = await self._attempt(leased)
        except asyncio.CancelledError:
            # This process ends. The job is queued again, so that another process can run it before the lease ends.
            await asyncio.shield(self._retry(leased, None, 0.0, uncounted_attempts=1))
            raise
        loop = asyncio.get_running_loop()
        lease_end = loop.time() + self._lease_seconds
        while loop.time() < lease_end:
            try:
                await (self._done(leased) if error is None else self._failed(leased, error))
            except DATABASE_UNAVAILABLE_ERRORS:
                # The result must be stored, because the other jobs of the lane wait for it.
                await asyncio.sleep(_POLL_INTERVAL_SECONDS)
            except Exception:
                log.exception("jobs.fault", kind=leased.job.kind)
                return
            else:
                return

    async def _attempt(self, leased: LeasedJob) -> Exception | None:
        """Return the error of the attempt, or None if the job is done."""
        job = leased.job
        if job.max_attempts is not None and leased.attempts > job.max_attempts:
            return JobFault(f"the processes of all {job.max_attempts} attempts ended")
        work = asyncio.create_task(self._work(leased))
        renewal = asyncio.create_task(self._renew(leased))
        try:
            await asyncio.wait((work, renewal), timeout=job.timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            renewal.cancel()
            await asyncio.gather(work, renewal, return_exceptions=True)
        if work.cancelled():
            return JobFault(
                "the lease ended" if job.timeout_seconds is None else f"not done within {job.timeout_seconds:g} s"
            )
        error = work.exception()
        if error is None or isinstance(error, self._jobs.expected):
            return error
        log.error("jobs.fault", kind=job.kind, exc_info=error)
        return JobFault(type(error).__name__)

    async def _work(self, leased: LeasedJob) -> None:
        # The call is in a coroutine, so that an error about wrong arguments is an error of the attempt.
        await leased.job.work(self._context, leased.org_id, **leased.args)

    async def _renew(self, leased: LeasedJob) -> None:
        """Renew the lease until another worker has the job, or until the database was unavailable for a whole lease."""
        loop = asyncio.get_running_loop()
        lease_end = loop.time() + self._lease_seconds
        values = {"id": leased.id, "leased_at": leased.leased_at, "lease": self._lease_seconds}
        while loop.time() < lease_end:
            await asyncio.sleep(self._lease_seconds / 4)
            sent_at = loop.time()
            try:
                async with asyncio.timeout(self._lease_seconds / 4):
                    if not await self._execute(_RENEW, values):
                        return
            except (*DATABASE_UNAVAILABLE_ERRORS, TimeoutError):
                continue
            lease_end = sent_at + self._lease_seconds

    async def _done(self, leased: LeasedJob) -> None:
        if leased.job.schedule is not None:
            await self._schedule_next(leased, None)
        else:
            await self._execute(_END, {"id": leased.id, "leased_at": leased.leased_at, "status": "done", "error": None})
        self._count(leased, "done")

    async def _failed(self, leased: LeasedJob, error: Exception) -> None:
        job = leased.job
        if job.schedule is not None:
            await self._schedule_next(leased, str(error))
            self._count(leased, "failed")
            return
        if not job.is_final(error) and (job.max_attempts is None or leased.attempts < job.max_attempts):
            delay = min(_MIN_RETRY_SECONDS * 2 ** min(leased.attempts - 1, _MAX_DOUBLINGS), _MAX_RETRY_SECONDS)
            # The delay is random within limits, so that a service that recovers does not receive all retries at once.
            await self._retry(leased, str(error), delay * random.uniform(0.8, 1.0))  # noqa: S311
            self._count(leased, "again")
            return
        log.warning("job.failed", kind=job.kind, org_id=str(leased.org_id), reason=str(error))
        values = {"id": leased.id, "leased_at": leased.leased_at, "status": "failed", "error": str(error)}
        async with self._database.service() as session:
            ended = await session.execute(_END, values)
            # `rowcount` is 0 if an earlier commit succeeded but its result was lost. `on_failure` is then not called
            # again.
            if job.on_failure is not None and ended.rowcount:  # type: ignore[attr-defined]
                await job.on_failure(session, leased.org_id, error)
            await session.commit()
        self._count(leased, "failed")

    async def _retry(self, leased: LeasedJob, error: str | None, delay: float, *, uncounted_attempts: int = 0) -> None:
        values = {"id": leased.id, "leased_at": leased.leased_at, "error": error, "delay": delay}
        values["uncounted"] = uncounted_attempts
        try:
            await self._execute(_RETRY, values)
        except IntegrityError:
            # A transaction that queued the same job was committed during the statement. The next attempt sees this job.
            await self._execute(_RETRY, values)

    async def _schedule_next(self, leased: LeasedJob, error: str | None) -> None:
        assert leased.job.schedule is not None
        values = {"id": leased.id, "leased_at": leased.leased_at, "error": error}
        await self._execute(_SCHEDULE_NEXT, {**values, **_times(leased.job.schedule)})

    async def _execute(self, statement: TextClause, values: dict[str, object]) -> bool:
        """Execute a statement, and return whether it changed a row."""
        async with self._database.feed() as session:
            result = await session.execute(statement, values)
            await session.commit()
        return bool(result.rowcount)  # type: ignore[attr-defined]

    def _count(self, leased: LeasedJob, result: str) -> None:
        if self._results is not None:
            self._results.add((leased.job.kind, result))


def _times(schedule: Schedule) -> dict[str, int]:
    return {"every": schedule.every_seconds, "offset": schedule.offset_seconds}
