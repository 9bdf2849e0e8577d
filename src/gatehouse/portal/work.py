"""What a portal does besides answering: jobs, and duties by the clock."""

import asyncio
import importlib
from typing import Final

import structlog
from sqlalchemy import text

from gatehouse.foundation.tasks import wanted
from gatehouse.portal.jobs import Duty, Tools, Worker, duties, duty

log = structlog.get_logger(__name__)

#: Every module with jobs, a line each: imported before work starts.
MODULES: Final = ("gatehouse.portal.organizations.jobs", "gatehouse.portal.outposts.jobs")


_PRUNE: Final = (
    text("DELETE FROM revoked_tokens WHERE expires_at < now()"),
    text("DELETE FROM notifications WHERE resolved_at < now() - interval '90 days'"),
    text("DELETE FROM jobs WHERE status IN ('done', 'failed') AND updated_at < now() - interval '30 days'"),
)


@duty("what is over", 600.0)
async def _prune(tools: Tools) -> None:
    for statement in _PRUNE:
        async with tools.database.service() as session:
            await session.execute(statement)
            await session.commit()


async def work(tools: Tools, worker: Worker) -> None:
    """Until it is cancelled."""
    for module in MODULES:
        importlib.import_module(module)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        for each in duties:
            group.create_task(_repeat(each, tools))


async def _repeat(each: Duty, tools: Tools) -> None:
    told = False
    while wanted():
        try:
            await each.work(tools)
            told = False
        except Exception as error:
            if not told:
                log.warning("duty.failed", duty=each.name, reason=f"{type(error).__name__}: {error}"[:300])
                told = True
        await asyncio.sleep(each.seconds)
