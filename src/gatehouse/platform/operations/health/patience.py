"""Asking what may hang: a health check must answer, whatever it asks about."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Given up, and not over yet. A connection to a frozen server takes its time to be closed.
given_up: Final[set[asyncio.Task[Any]]] = set()


async def patiently(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What the work gives. Raises `TimeoutError` when the time is over, also where the work does not let itself be
    cancelled."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if done:
            return task.result()
        raise TimeoutError
    finally:
        if not task.done():
            given_up.add(task)
            task.add_done_callback(_over)
            task.cancel()


def _over(task: asyncio.Task[Any]) -> None:
    given_up.discard(task)
    if not task.cancelled():
        # Nobody asks for it any more.
        task.exception()
