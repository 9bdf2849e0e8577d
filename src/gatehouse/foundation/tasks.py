"""Helpers for background tasks that run until they are cancelled."""

import asyncio


async def cancel_all(*tasks: asyncio.Task[None]) -> None:
    """Cancels the tasks and waits for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def is_running() -> bool:
    """Return whether the current task has not been cancelled. Use `while wanted():` instead of `while True:` in loops
    that catch every error.

    A cancellation is raised once, and the awaited code can lose it: by an error of its own during cleanup (for example
    when the database is gone), or in `asyncio.wait_for` before Python 3.12. The loop would then never end, nor the
    process.
    """
    task = asyncio.current_task()
    assert task is not None
    return not task.cancelling()
