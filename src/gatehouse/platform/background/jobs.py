"""Background jobs: stored in PostgreSQL, queued in the transaction of the change, retried with backoff on failure.

    @job("access.anonymise")                               @scheduled("keeper.prune", "*/10 * * * *")
    async def anonymise(tools: Tools, *, id: str): ...     async def prune(tools: Tools): ...

    await defer(change.session, anonymise, id="...")

A rolled-back change queues nothing. A committed change runs its job at least once, on one of the machines that run
jobs (`keeper.work` lists the modules with jobs). A scheduled job runs once across all machines.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
import procrastinate
from procrastinate import JobContext, RetryStrategy
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import Clock
from gatehouse.foundation.metrics import Counter
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.metrics import notifications

#: The job runner opens it with a connector of the service role. Queueing does not need it open.
app: Final = procrastinate.App(connector=procrastinate.PsycopgConnector())

_TOOLS_KEY: Final = "tools"
_QUEUE: Final = "default"
_DEFER: Final = text(
    "SELECT (procrastinate_defer_jobs_v1(ARRAY[ROW(:queue, :task, 0, CAST(:lock AS text), NULL,"
    " CAST(:args AS jsonb), CAST(:at AS timestamptz))]::procrastinate_job_to_defer_v1[]))[1]"
)

Work = TypeVar("Work", bound=Callable[..., Awaitable[None]])


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the process that a job can use."""

    settings: Settings
    database: Database
    sealer: Sealer
    outbound: Outbound
    clock: Clock
    #: HTTP client for webhooks' and alerts' receivers
    receivers: Receivers
    #: results of these notifications; a process that publishes metrics passes its own counter
    notifications: Counter = msgspec.field(default_factory=notifications)


def job(name: str, *, attempts: int = 5) -> Callable[[Work], Work]:
    """Register `async def work(tools, **args)` as a job. It is tried up to `attempts` times; the delay doubles."""

    def register(work: Work) -> Work:
        async def run(context: JobContext, /, **args: Any) -> None:
            await work(context.additional_context[_TOOLS_KEY], **args)

        retry = RetryStrategy(max_attempts=attempts, exponential_wait=2)
        app.task(name=name, queue=_QUEUE, pass_context=True, retry=retry)(run)
        _names[work] = name
        return work

    return register


def scheduled(name: str, cron: str, *, alone: bool = True) -> Callable[[Work], Work]:
    """Register `async def work(tools)` to run on the `cron` schedule. With `alone` its runs do not overlap."""

    def register(work: Work) -> Work:
        async def run(context: JobContext, timestamp: int) -> None:
            await work(context.additional_context[_TOOLS_KEY])

        lock = name if alone else None
        task = app.task(name=name, queue=_QUEUE, pass_context=True, lock=lock, queueing_lock=name)(run)
        app.periodic(cron=cron)(task)
        _names[work] = name
        return work

    return register


#: job names, by the registered function
_names: Final[dict[Callable[..., Awaitable[None]], str]] = {}


async def defer(
    session: AsyncSession,
    work: Callable[..., Awaitable[None]],
    *,
    lock: str | None = None,
    at: datetime | None = None,
    **args: Any,
) -> int:
    """Queue a job in the session's transaction and return its id. The job exists if and only if that is committed.

    Jobs with the same `lock` run one after the other in the order in which they were queued. `args` are JSON. The job
    does not run before `at`.
    """
    values = {
        "queue": _QUEUE, "task": _names[work], "lock": lock, "at": at,
        "args": msgspec.json.encode(args).decode(),
    }  # fmt: skip
    return int((await session.execute(_DEFER, values)).scalar_one())


def context(tools: Tools) -> dict[str, Any]:
    """Return the procrastinate context that passes `tools` to the jobs of a worker."""
    return {_TOOLS_KEY: tools}
