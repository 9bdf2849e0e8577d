"""Background tasks, for which answers do not wait."""

import asyncio

from gatehouse.platform.background.tasks import BackgroundTasks


async def test_tasks_run_in_the_background_and_are_finished_at_the_end() -> None:
    later, done, gate = BackgroundTasks(), [], asyncio.Event()

    async def work(number: int) -> None:
        await gate.wait()
        done.append(number)

    for number in range(3):
        await later.run(work(number))
    assert done == []
    gate.set()
    await later.settle()
    assert done == [0, 1, 2]


async def test_a_failing_task_does_not_affect_others() -> None:
    later, done = BackgroundTasks(), []

    async def fails() -> None:
        raise ValueError("broken")

    async def works() -> None:
        done.append(1)

    await later.run(fails())
    await later.run(works())
    await later.settle()
    assert done == [1]


async def test_too_many_tasks_make_their_creator_wait() -> None:
    later, gate = BackgroundTasks(), asyncio.Event()

    async def work() -> None:
        await gate.wait()

    for _ in range(256):
        await later.run(work())
    one_more = asyncio.create_task(later.run(work()))
    await asyncio.sleep(0.01)
    assert not one_more.done()
    gate.set()
    await one_more
    await later.settle()
