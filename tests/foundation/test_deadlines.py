import asyncio

import pytest

from gatehouse.foundation.deadlines import Deadlines


async def test_a_wait_that_takes_too_long_is_ended() -> None:
    deadlines = Deadlines(0.02)
    with pytest.raises(TimeoutError), deadlines.one() as wait:
        await asyncio.wait_for(asyncio.Event().wait(), 5)
    assert wait.expired
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "the task goes on as if nothing had been"
    await asyncio.sleep(0)


async def test_a_wait_that_ends_in_time_is_not_interrupted() -> None:
    deadlines = Deadlines(0.02)
    with deadlines.one() as wait:
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    assert not wait.expired


async def test_each_wait_has_its_own_deadline() -> None:
    deadlines = Deadlines(0.1)
    loop = asyncio.get_running_loop()
    took: dict[int, float] = {}

    async def waiting(number: int) -> None:
        await asyncio.sleep(number * 0.04)
        began = loop.time()
        try:
            with deadlines.one():
                await asyncio.sleep(0.01 if number % 2 else 5)
        except TimeoutError:
            took[number] = loop.time() - began

    await asyncio.gather(*[waiting(number) for number in range(7)])
    assert list(took) == [0, 2, 4, 6]
    assert all(0.09 < seconds < 0.5 for seconds in took.values()), took


async def test_a_cancellation_by_other_code_continues() -> None:
    deadlines = Deadlines(0.02)

    async def waiting() -> None:
        with deadlines.one():
            await asyncio.sleep(5)

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    task.cancel("left")
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_at_the_time_of_the_timeout_continues() -> None:
    deadlines = Deadlines(0.02)

    async def waiting() -> None:
        with deadlines.one() as wait:
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                assert wait.expired
                task.cancel()
                raise

    task = asyncio.create_task(waiting())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_in_the_block_is_not_changed() -> None:
    deadlines = Deadlines(0.02)
    with pytest.raises(ZeroDivisionError), deadlines.one():
        try:
            await asyncio.sleep(5)
        finally:
            raise ZeroDivisionError
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_nested_waits_are_distinguished() -> None:
    outer, inner = Deadlines(0.02), Deadlines(5)
    with pytest.raises(TimeoutError), outer.one() as long, inner.one() as short:
        await asyncio.sleep(5)
    assert (long.expired, short.expired) == (True, False)
