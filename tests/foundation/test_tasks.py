"""A cancelled task ends, even if the awaited code loses the cancellation."""

import asyncio

from gatehouse.foundation.tasks import is_running


async def test_a_lost_cancellation_still_ends_the_task() -> None:
    began = asyncio.Event()

    async def wait_long() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            # A connection that cannot be closed cleanly raises such an error.
            raise ConnectionError

    async def work() -> int:
        failures = 0
        while is_running():
            try:
                await wait_long()
            except Exception:
                failures += 1
            await asyncio.sleep(0)
        return failures

    task = asyncio.create_task(work())
    await began.wait()
    task.cancel()
    async with asyncio.timeout(5):
        assert await task == 1


async def test_a_timeout_does_not_end_the_task() -> None:
    turns = 0
    while is_running() and turns < 2:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(1)
        except TimeoutError:
            turns += 1
    assert turns == 2
