"""Background tasks that run until they are cancelled, and threads for work that would block the event loop.

Short work without a limit of its own (reading a file, compiling a draft) uses `asyncio.to_thread`. Inspection of long
texts has a scheduler that is fair between organizations (`engine.dlp.turns`).
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from gatehouse.foundation.errors import Unavailable

T = TypeVar("T")


async def cancel_all(*tasks: asyncio.Task[None]) -> None:
    """Cancels the tasks and waits for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def is_running() -> bool:
    """Return whether the current task has not been cancelled. Use `while is_running():` instead of `while True:` in
    loops that catch every error.

    A cancellation is raised once, and the awaited code can lose it: by an error of its own during cleanup (for example
    when the database is gone), or in `asyncio.wait_for` before Python 3.12. The loop would then never end, nor the
    process.
    """
    task = asyncio.current_task()
    assert task is not None
    return not task.cancelling()


class BoundedThreadPool:
    """Runs `threads` pieces of work at once; `max_waiting` more may wait, then `run` raises `busy` (503).

    Threads start at the first work, so that a pool may be created before a fork. `niceness` is their nice value, on
    Linux.
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
        """Return the result of `work`. Raises its exceptions, and `busy` if too much work waits."""
        with self._lock:
            if self.pending >= self._max_pending:
                raise self._busy(headers={"Retry-After": "1"})
            self.pending += 1
        future = self._pool.submit(work)
        # When the thread is done, not when the caller is cancelled: a client that disconnects frees no core.
        future.add_done_callback(self._done)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: object) -> None:
        with self._lock:
            self.pending -= 1


def _set_niceness(niceness: int) -> None:
    """Lower the priority of this thread. Linux has a nice value for each thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
