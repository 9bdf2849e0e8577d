"""Jobs: work that is queued in the transaction of a change or by a schedule, and that is retried with backoff.

    JOBS: Final = Jobs[Tools]()

    @JOBS.job("access.anonymise")
    async def anonymise(tools: Tools, tenant_id: UUID, *, user_id: str) -> None: ...

    @JOBS.scheduled("keeper.prune", every_seconds=600)
    async def prune(tools: Tools) -> None: ...

    await JOBS.queue(change.session, anonymise, tenant_id, user_id="...")

If a change is rolled back, its job is not queued. If a change is committed, its job is run at least once
(`job_worker`). Every job must therefore be idempotent. The schemas of the platform and the portal each have a table
`jobs` (docs/decisions/jobs.md)."""

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

#: A function that is called in the transaction that ends a failed job. The transaction has the service role.
OnFailure = Callable[[AsyncSession, Any, Exception], Awaitable[None]]


class JobFault(Exception):
    """An attempt failed because of an unexpected exception, its time limit or the end of its process. The message
    contains no secrets."""


def _never(error: Exception) -> bool:
    return False


class Schedule(msgspec.Struct, frozen=True):
    """A schedule. A job runs at each Unix time that is `offset_seconds` after a multiple of `every_seconds`."""

    every_seconds: int
    offset_seconds: int


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of job."""

    kind: str
    work: Callable[..., Awaitable[None]]
    #: whether jobs of one organization run one after the other; if a change queues the job while it is queued, the job
    #: runs only once
    serial: bool = False
    #: number of attempts after which the job fails; None if the job is retried until it succeeds
    max_attempts: int | None = None
    #: time limit of one attempt
    timeout_seconds: float | None = None
    #: returns whether an error is final, because a retry would fail in the same way
    is_final: Callable[[Exception], bool] = _never
    on_failure: OnFailure | None = None
    schedule: Schedule | None = None


# If a job of the same kind is already queued in the lane, it becomes due at the earlier of the two times. Its number of
# attempts is reset.
_QUEUE: Final = text(
    "INSERT INTO jobs (id, kind, org_id, lane, args, run_at) VALUES (:id, :kind, :org_id, :lane, CAST(:args AS jsonb),"
    " coalesce(CAST(:run_at AS timestamptz), now()))"
    " ON CONFLICT (kind, lane) WHERE status = 'queued' DO UPDATE"
    " SET run_at = least(jobs.run_at, EXCLUDED.run_at), attempts = 0, updated_at = now() RETURNING id"
)


class Jobs(Generic[Context]):
    """The kinds of jobs of one deployable. The functions of jobs receive a `Context`.

    `expected` are the exceptions that jobs raise for a failed attempt. Other exceptions are faults of the program and
    are logged.
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
        """Queue a job in the transaction of a session, and return the id of the job. `args` are stored as JSON. The job
        does not run before `at`.

        A serial job has no arguments. If it is already queued, the arguments of the second change would be lost."""
        job = self.kinds[self._kind_of[work]]
        if job.serial and args:
            raise TypeError(f"{job.kind}: a serial job has no arguments")
        job_id = new_id()
        values = {
            "id": job_id, "kind": job.kind, "org_id": org_id, "args": msgspec.json.encode(args).decode(), "run_at": at,
            # A job that is not serial has its own lane, so that it does not wait for other jobs.
            "lane": str(org_id or job.kind) if job.serial else str(job_id),
        }  # fmt: skip
        return UUID(str((await session.execute(_QUEUE, values)).scalar_one()))

    def scheduled_jobs(self) -> Iterable[tuple[str, Schedule]]:
        """Return the kind and schedule of each scheduled job."""
        return [(job.kind, job.schedule) for job in self.kinds.values() if job.schedule is not None]

    def _add(self, job: Job) -> None:
        if job.kind in self.kinds:
            raise ValueError(f"there are two jobs of the kind {job.kind}; kinds must be unique")
        self.kinds[job.kind] = job
