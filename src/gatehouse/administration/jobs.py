"""Jobs: work that is queued in the transaction of a change or by a schedule, and retried with backoff.

    JOBS: Final = Jobs[Tools]()

    @JOBS.job("access.anonymise")
    async def anonymise(tools: Tools, tenant_id: UUID, *, user_id: str) -> None: ...

    @JOBS.scheduled("keeper.prune", every_seconds=600)
    async def prune(tools: Tools) -> None: ...

    await JOBS.queue(change.session, anonymise, tenant_id, user_id="...")

A rolled-back change queues nothing. A committed change runs its job at least once (`job_worker`), so every job is
idempotent. The table `jobs` stands in the platform's and in the portal's schema (docs/decisions/jobs.md).
"""

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.ids import new_id

Context = TypeVar("Context")
Work = TypeVar("Work", bound=Callable[..., Awaitable[None]])

#: Called in the transaction that ends a failed job, as the service role.
OnFailure = Callable[[AsyncSession, Any, Exception], Awaitable[None]]


class JobFault(Exception):
    """An attempt ended by an unexpected exception, by its time limit or with its process. The text has no secrets."""


def _never(error: Exception) -> bool:
    return False


class Schedule(msgspec.Struct, frozen=True):
    """Runs at the times that are `offset_seconds` after a multiple of `every_seconds` since 1970 in UTC."""

    every_seconds: int
    offset_seconds: int


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of job."""

    kind: str
    work: Callable[..., Awaitable[None]]
    #: Jobs of one organization run one after the other, and a queued job serves every change that queues it again.
    serial: bool = False
    #: Attempts until the job fails; None: it is retried until it succeeds.
    max_attempts: int | None = None
    #: Seconds of one attempt.
    timeout_seconds: float | None = None
    #: Whether a retry would fail in the same way.
    is_final: Callable[[Exception], bool] = _never
    on_failure: OnFailure | None = None
    schedule: Schedule | None = None


# A queued job of the same lane becomes due at the earlier time, and gets all its attempts again.
_QUEUE: Final = text(
    "INSERT INTO jobs (id, kind, org_id, lane, args, run_at) VALUES (:id, :kind, :org_id, :lane, CAST(:args AS jsonb),"
    " coalesce(CAST(:run_at AS timestamptz), now()))"
    " ON CONFLICT (kind, lane) WHERE status = 'queued' DO UPDATE"
    " SET run_at = least(jobs.run_at, EXCLUDED.run_at), attempts = 0, updated_at = now() RETURNING id"
)


class Jobs(Generic[Context]):
    """The kinds of jobs of one deployable, whose functions get a `Context`.

    `expected` are exceptions that jobs raise for a failed attempt. Others are faults of the program and are logged.
    """

    def __init__(self, *, expected: tuple[type[Exception], ...] = ()) -> None:
        self.expected: Final = expected
        self.kinds: Final[dict[str, Job]] = {}
        self._kind_of: Final[dict[Callable[..., Awaitable[None]], str]] = {}

    def job(
        self,
        kind: str,
        *,
        serial: bool = False,
        max_attempts: int | None = 5,
        timeout_seconds: float | None = None,
        is_final: Callable[[Exception], bool] = _never,
        on_failure: OnFailure | None = None,
    ) -> Callable[[Work], Work]:
        """Register `async def work(context, org_id, **args)`. The delay between two attempts doubles up to an hour."""

        def register(work: Work) -> Work:
            job = Job(
                kind=kind, work=work, serial=serial, max_attempts=max_attempts, timeout_seconds=timeout_seconds,
                is_final=is_final, on_failure=on_failure,
            )  # fmt: skip
            self._add(job)
            self._kind_of[work] = kind
            return work

        return register

    def scheduled(self, kind: str, *, every_seconds: int, offset_seconds: int = 0) -> Callable[[Work], Work]:
        """Register `async def work(context)`, which runs once for each time of the schedule across all processes.

        Runs do not overlap. A run that fails is not retried before the next time. Missed times are run once.
        """
        schedule = Schedule(every_seconds, offset_seconds)

        def register(work: Work) -> Work:
            async def run(context: Context, org_id: None) -> None:
                await work(context)

            self._add(Job(kind=kind, work=run, serial=True, schedule=schedule))
            return work

        return register

    async def queue(
        self, session: AsyncSession, work: Callable[..., Awaitable[None]], org_id: UUID | None, *,
        at: datetime | None = None, **args: Any,
    ) -> UUID:  # fmt: skip
        """Queue a job in the session's transaction and return its id. `args` are JSON. It does not run before `at`.

        A serial job has no arguments: if it is queued already, those of the second change would be lost."""
        job = self.kinds[self._kind_of[work]]
        if job.serial and args:
            raise TypeError(f"{job.kind}: a serial job has no arguments")
        job_id = new_id()
        values = {
            "id": job_id, "kind": job.kind, "org_id": org_id, "args": msgspec.json.encode(args).decode(), "run_at": at,
            # A lane of its own: it waits for no other job.
            "lane": str(org_id or job.kind) if job.serial else str(job_id),
        }  # fmt: skip
        return UUID(str((await session.execute(_QUEUE, values)).scalar_one()))

    def scheduled_jobs(self) -> Iterable[tuple[str, Schedule]]:
        """Return kind and schedule of the scheduled jobs."""
        return [(job.kind, job.schedule) for job in self.kinds.values() if job.schedule is not None]

    def _add(self, job: Job) -> None:
        if job.kind in self.kinds:
            raise ValueError(f"two jobs are called {job.kind}")
        self.kinds[job.kind] = job
