"""Duties: work that each process for background work repeats. A duty must be safe to run in several processes at
once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

import msgspec
import structlog

from gatehouse.foundation.tasks import is_running

log = structlog.get_logger(__name__)

Context = TypeVar("Context")


class Duty(msgspec.Struct, Generic[Context], frozen=True):
    """Work that is repeated. It starts again `seconds` after its end."""

    name: str
    seconds: float
    work: Callable[[Context], Awaitable[object]]


async def repeat_all(duties: Iterable[Duty[Context]], context: Context) -> None:
    """Repeat all duties until cancelled."""
    async with asyncio.TaskGroup() as group:
        for duty in duties:
            group.create_task(repeat(duty, context), name=duty.name)


async def repeat(duty: Duty[Context], context: Context) -> None:
    """Repeat a duty until cancelled. Of several consecutive failures, only the first one is logged."""
    failure_logged = False
    while is_running():
        try:
            await duty.work(context)
            failure_logged = False
        except Exception as error:
            if not failure_logged:
                log.warning("duty.failed", duty=duty.name, reason=f"{type(error).__name__}: {error}"[:300])
                failure_logged = True
        await asyncio.sleep(duty.seconds)
