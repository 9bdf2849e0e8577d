"""What a portal does besides answering: jobs, and duties by the clock."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import structlog
from sqlalchemy import text

from gatehouse.portal.jobs import Tools, Worker

log = structlog.get_logger(__name__)

#: Every module with jobs, a line each: imported before work starts.
MODULES: Final = ("gatehouse.portal.organizations.jobs",)


class Duty(NamedTuple):
    """What is done again and again in every process: it must bear company."""

    name: str
    seconds: float
    work: Callable[[Tools], Awaitable[object]]


_PRUNE: Final = (
    text("DELETE FROM revoked_tokens WHERE expires_at < now()"),
    text("DELETE FROM jobs WHERE status IN ('done', 'failed') AND updated_at < now() - interval '30 days'"),
)


async def _prune(tools: Tools) -> None:
    for statement in _PRUNE:
        async with tools.database.service() as session:
            await session.execute(statement)
            await session.commit()


DUTIES: Final[tuple[Duty, ...]] = (Duty("what is over", 600.0, _prune),)


async def work(tools: Tools, worker: Worker) -> None:
    """Until it is cancelled."""
    for module in MODULES:
        importlib.import_module(module)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        for duty in DUTIES:
            group.create_task(_repeat(duty, tools))


async def _repeat(duty: Duty, tools: Tools) -> None:
    told = False
    while True:
        try:
            await duty.work(tools)
            told = False
        except Exception as error:
            if not told:
                log.warning("duty.failed", duty=duty.name, reason=f"{type(error).__name__}: {error}"[:300])
                told = True
        await asyncio.sleep(duty.seconds)
