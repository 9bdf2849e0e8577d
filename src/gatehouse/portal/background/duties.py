"""Runs a portal's background work: jobs and periodic tasks."""

import asyncio
import importlib
from functools import partial
from typing import Final

import structlog
from sqlalchemy import text

from gatehouse.administration.duties import repeat
from gatehouse.portal.background.jobs import (
    JobContext,
    JobWorker,
    periodic,
    periodic_tasks,
)

log = structlog.get_logger(__name__)

#: Modules with jobs and periodic tasks, imported before the work starts.
MODULES: Final = ("gatehouse.portal.organizations.jobs", "gatehouse.portal.outposts.jobs")


_PRUNE: Final = (
    text("DELETE FROM revoked_tokens WHERE expires_at < now()"),
    text("DELETE FROM notifications WHERE resolved_at < now() - interval '90 days'"),
    text("DELETE FROM jobs WHERE status IN ('done', 'failed') AND updated_at < now() - interval '30 days'"),
)


@periodic("expired rows", 600.0)
async def _prune(context: JobContext) -> None:
    for statement in _PRUNE:
        async with context.database.service() as session:
            await session.execute(statement)
            await session.commit()


async def work(context: JobContext, worker: JobWorker) -> None:
    """Runs until it is cancelled."""
    for module in MODULES:
        importlib.import_module(module)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        for task in periodic_tasks:
            group.create_task(repeat(task.name, task.seconds, partial(task.work, context)))
