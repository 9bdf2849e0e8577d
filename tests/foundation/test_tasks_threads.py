"""The thread pool for blocking work, with real threads."""

import asyncio
import os
import sys
import threading

import pytest

from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.tasks import BoundedThreadPool


class Busy(Unavailable):
    code = "busy"


async def test_work_beyond_the_queue_is_refused_with_the_time_to_retry() -> None:
    pool, release = BoundedThreadPool("test", threads=1, max_waiting=1, busy=Busy), threading.Event()
    running = [asyncio.create_task(pool.run(release.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Busy) as refusal:
        await pool.run(release.wait)
    assert refusal.value.headers == {"Retry-After": "1"}
    release.set()
    assert await asyncio.gather(*running) == [True, True]
    assert await pool.run(lambda: 3) == 3
    pool.close()


async def test_a_cancelled_caller_frees_no_place_before_its_thread_is_done() -> None:
    pool, release = BoundedThreadPool("test", threads=1, max_waiting=0, busy=Busy), threading.Event()
    task = asyncio.create_task(pool.run(release.wait))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(Busy):
        await pool.run(lambda: None)
    release.set()
    while pool.pending:
        await asyncio.sleep(0.01)
    assert await pool.run(lambda: "free") == "free"
    pool.close()


async def test_an_exception_reaches_the_caller_and_frees_the_place() -> None:
    pool = BoundedThreadPool("test", threads=1, max_waiting=0, busy=Busy)
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 // 0)
    assert await pool.run(lambda: 1) == 1
    pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a nice value for each thread")
async def test_threads_have_the_niceness_and_the_event_loop_keeps_its_own() -> None:
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    pool = BoundedThreadPool("test", threads=1, max_waiting=0, busy=Busy, niceness=10)
    assert await pool.run(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())) == 10
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
    pool.close()
