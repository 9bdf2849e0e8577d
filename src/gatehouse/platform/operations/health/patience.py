"""A time-out for work that may hang even when it is cancelled: a health check must answer in time."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Timed-out tasks that still run. Closing a connection to a frozen server takes time.
timed_out: Final[set[asyncio.Task[Any]]] = set()


async def with_timeout(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return the result of `work`. Raises `TimeoutError` after `seconds`, even if `work` does not react to
    cancellation."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if done:
            return task.result()
        raise TimeoutError
    finally:
        if not task.done():
            timed_out.add(task)
            task.add_done_callback(_forget)
            task.cancel()


def _forget(task: asyncio.Task[Any]) -> None:
    timed_out.discard(task)
    if not task.cancelled():
        # Retrieved, so that asyncio does not log it as unhandled.
        task.exception()
