"""Background tasks that run until they are cancelled, and threads for work that would block the event loop.

Short work that needs no limit (reading a file, compiling a draft) uses `asyncio.to_thread`. The inspection of long
texts uses a scheduler that is fair between organizations (`engine.dlp.turns`). All pools, their bounds and the reasons
are in docs/decisions/threads.md.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from gatehouse.foundation.errors import Unavailable

T = TypeVar("T")


async def cancel_all(*tasks: asyncio.Task[Any]) -> None:
    """Cancels the tasks and waits for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def is_running() -> bool:
    """Returns whether the current task has not been cancelled. Use `while is_running():` instead of `while True:` in
    loops that catch every error.

    A cancellation is raised once, and the awaited code can lose it: if its cleanup raises another error (for example
    because the database is unavailable), or in `asyncio.wait_for` before Python 3.12. With `while True:` the loop and
    the process would then never end.
    """
    task = asyncio.current_task()
    assert task is not None
    return not task.cancelling()


class BoundedThreadPool:
    """A pool of threads. It runs up to `threads` pieces of work at a time, and up to `max_waiting` more may wait. For
    further work `run` raises `busy` (503).

    The threads are started when work arrives, so a pool may be created before a fork. `niceness` is the nice value of
    the threads, on Linux.
    """

    def __init__(
        self, name: str, *, threads: int, max_waiting: int, busy: type[Unavailable], niceness: int = 0
    ) -> None:
        self._busy = busy
        self._max_pending = threads + max_waiting
        self._pool = ThreadPoolExecutor(
            threads, thread_name_prefix=name, initializer=partial(_set_niceness, niceness) if niceness else None
        )
        self._lock = threading.Lock()
        #: pieces of work that run or wait
        self.pending = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`. Raises its exceptions, and `busy` if too much work waits."""
        with self._lock:
            if self.pending >= self._max_pending:
                raise self._busy(headers={"Retry-After": "1"})
            self.pending += 1
        future = self._pool.submit(work)
        # The work ends when its thread is done and not when its caller is cancelled: after a client has disconnected,
        # the thread still uses a core.
        future.add_done_callback(self._done)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: object) -> None:
        with self._lock:
            self.pending -= 1


def _set_niceness(niceness: int) -> None:
    """Lowers the priority of this thread. Linux has a nice value for each thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
