"""Thread pool for work on XML and keys outside the event loop, with a bounded queue."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from gatehouse.platform.access.saml.errors import SamlBusy

_WORKER_THREADS: Final = 2
_MAX_QUEUED_CALLS: Final = 32

_Result = TypeVar("_Result")

_pool: Final = ThreadPoolExecutor(_WORKER_THREADS, thread_name_prefix="saml")
_slots: Final = threading.BoundedSemaphore(_WORKER_THREADS + _MAX_QUEUED_CALLS)


async def offload(work: Callable[[], _Result]) -> _Result:
    """Run `work` in the thread pool and return its result. Raises `SamlBusy` if the queue is full."""
    if not _slots.acquire(blocking=False):
        raise SamlBusy(headers={"Retry-After": "1"})
    future = _pool.submit(work)
    # Released when the thread is done, not when the caller is cancelled: a client that disconnects frees no core.
    future.add_done_callback(lambda _: _slots.release())
    return await asyncio.wrap_future(future)
