"""The thread pool for blocking work, with real threads."""

import asyncio
import os
import re
import sys
import threading
from pathlib import Path

import pytest

import gatehouse
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


#: Modules that start threads of their own, with the reason. All other modules use `BoundedThreadPool`, or
#: `asyncio.to_thread` for short work.
THREAD_OWNERS = {
    "foundation/tasks.py": "the pool",
    "foundation/journal/writer.py": "commits in the order of the records",
    "foundation/egress/resolver.py": "a look-up cannot be cancelled, so it may outlast its caller",
    "foundation/processes/children.py": "ends the process when its parent dies",
    "engine/dlp/turns.py": "is fair between organizations",
    "detection/service/tiers.py": "one thread for each model",
    "platform/keeper/drain.py": "stores the journal beside the event loop",
}


def test_threads_are_started_in_few_places() -> None:
    source = Path(gatehouse.__file__).parent
    own = re.compile(r"ThreadPoolExecutor\(|\bThread\(|run_in_executor|run_in_threadpool")
    owners = {str(path.relative_to(source)) for path in source.rglob("*.py") if own.search(path.read_text("utf-8"))}
    assert owners == THREAD_OWNERS.keys()
