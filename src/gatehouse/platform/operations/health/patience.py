"""A timeout for work that may hang even after it is cancelled, because a health check must answer in time."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Tasks that are still running after their timeout. Closing a connection to a frozen server takes time.
timed_out: Final[set[asyncio.Task[Any]]] = set()


async def with_timeout(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return the result of `work`. Raises `TimeoutError` after `seconds`, even if `work` does not react to its
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
        # Retrieves the exception, so that asyncio does not log it as unhandled.
        task.exception()
