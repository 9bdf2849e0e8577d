"""Background jobs: kept in PostgreSQL, queued in the transaction of the change that wants them, tried again on failure.

    @job("access.anonymise")                               @scheduled("keeper.prune", "*/10 * * * *")
    async def anonymise(tools: Tools, *, id: str): ...     async def prune(tools: Tools): ...

    await defer(change.session, anonymise, id="...")

A rolled-back change queues nothing; a committed one runs its job at least once, on one of the machines that work on
jobs (`keeper.work`, which lists the modules with jobs). Scheduled jobs run once for all machines.
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
from gatehouse.foundation.receivers import Receivers
from gatehouse.foundation.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.metrics import notifications

#: Opened with a connector of the service role by whoever works on jobs. Queueing needs no opening.
app: Final = procrastinate.App(connector=procrastinate.PsycopgConnector())

_TOOLS: Final = "tools"
_QUEUE: Final = "default"
_DEFER: Final = text(
    "SELECT (procrastinate_defer_jobs_v1(ARRAY[ROW(:queue, :task, 0, CAST(:lock AS text), NULL,"
    " CAST(:args AS jsonb), CAST(:at AS timestamptz))]::procrastinate_job_to_defer_v1[]))[1]"
)

Work = TypeVar("Work", bound=Callable[..., Awaitable[None]])


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What a job can reach."""

    settings: Settings
    database: Database
    sealer: Sealer
    outbound: Outbound
    clock: Clock
    #: to where customers want to hear of things
    receivers: Receivers
    #: what came of that: where a process publishes figures, its own
    notifications: Counter = msgspec.field(default_factory=notifications)


def job(name: str, *, attempts: int = 5) -> Callable[[Work], Work]:
    """Registers `async def work(tools, **args)`. Tried `attempts` times, each after twice the pause before."""

    def register(work: Work) -> Work:
        async def run(context: JobContext, /, **args: Any) -> None:
            await work(context.additional_context[_TOOLS], **args)

        retry = RetryStrategy(max_attempts=attempts, exponential_wait=2)
        app.task(name=name, queue=_QUEUE, pass_context=True, retry=retry)(run)
        _names[work] = name
        return work

    return register


def scheduled(name: str, cron: str, *, alone: bool = True) -> Callable[[Work], Work]:
    """Registers `async def work(tools)` to run at the minutes that `cron` names, not beside itself if `alone`."""

    def register(work: Work) -> Work:
        async def run(context: JobContext, timestamp: int) -> None:
            await work(context.additional_context[_TOOLS])

        lock = name if alone else None
        task = app.task(name=name, queue=_QUEUE, pass_context=True, lock=lock, queueing_lock=name)(run)
        app.periodic(cron=cron)(task)
        _names[work] = name
        return work

    return register


#: by the function that does the work
_names: Final[dict[Callable[..., Awaitable[None]], str]] = {}


async def defer(
    session: AsyncSession,
    work: Callable[..., Awaitable[None]],
    *,
    lock: str | None = None,
    at: datetime | None = None,
    **args: Any,
) -> int:
    """Queues a job in the session's transaction: it exists when, and only when, that is committed. Returns its id.

    Jobs with the same `lock` run one after the other, in the order in which they were queued. `args` are JSON.
    """
    values = {
        "queue": _QUEUE, "task": _names[work], "lock": lock, "at": at,
        "args": msgspec.json.encode(args).decode(),
    }  # fmt: skip
    return int((await session.execute(_DEFER, values)).scalar_one())


def context(tools: Tools) -> dict[str, Any]:
    """What a worker is given so that its jobs find their tools."""
    return {_TOOLS: tools}
