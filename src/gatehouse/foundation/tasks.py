"""Tasks that go on until they are cancelled."""

import asyncio


async def cancelled(*tasks: asyncio.Task[None]) -> None:
    """Cancels the tasks, and returns when they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def wanted() -> bool:
    """Whether the current task is to go on: `while wanted():` around what catches every error, not `while True:`.

    A cancellation comes once, and what is awaited can lose it: by an error of its own on the way out (a worker of jobs
    whose database is gone), or in `asyncio.wait_for` (before Python 3.12). The loop would then go on for ever, and with
    it a process that was told to end.
    """
    task = asyncio.current_task()
    assert task is not None
    return not task.cancelling()
