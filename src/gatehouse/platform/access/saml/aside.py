"""Work on XML and keys, away from the event loop: a few messages at once, a bounded number waiting."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from gatehouse.platform.access.saml.errors import Busy

_WORKERS: Final = 2
_WAITING: Final = 32

_Result = TypeVar("_Result")

_pool: Final = ThreadPoolExecutor(_WORKERS, thread_name_prefix="saml")
_places: Final = threading.BoundedSemaphore(_WORKERS + _WAITING)


async def aside(work: Callable[[], _Result]) -> _Result:
    """Raises `Busy`, and whatever the work raises."""
    if not _places.acquire(blocking=False):
        raise Busy(headers={"Retry-After": "1"})
    future = _pool.submit(work)
    # Given back when the thread is done, not when the caller has left: a client that hangs up frees no core.
    future.add_done_callback(lambda _: _places.release())
    return await asyncio.wrap_future(future)
