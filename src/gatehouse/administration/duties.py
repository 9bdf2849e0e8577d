"""Duties: work that every process with background work repeats. It must be safe to run in several processes at once."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gatehouse.foundation.tasks import is_running

log = structlog.get_logger(__name__)


async def repeat(name: str, seconds: float, work: Callable[[], Awaitable[object]]) -> None:
    """Run `work` again `seconds` after its end, until cancelled. The first of several failures in a row is logged."""
    failure_logged = False
    while is_running():
        try:
            await work()
            failure_logged = False
        except Exception as error:
            if not failure_logged:
                log.warning("duty.failed", duty=name, reason=f"{type(error).__name__}: {error}"[:300])
                failure_logged = True
        await asyncio.sleep(seconds)
