"""Resolves host names, each in its own thread.

The system's resolver blocks a thread for ten seconds or more if a name's servers do not answer, and cannot be
cancelled. In the event loop's default executor, which has few threads, a few such names would block all other look-ups.
"""

import asyncio
import contextlib
import socket
import threading
from typing import Any, Final

#: concurrent look-ups of a process
MAX_CONCURRENT_LOOKUPS: Final = 256

_free: Final = threading.BoundedSemaphore(MAX_CONCURRENT_LOOKUPS)


async def look_up(host: str, port: int) -> list[str]:
    """Return the name's addresses without duplicates. Raises `OSError`, also if too many look-ups are running. The
    thread continues after the caller is cancelled."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def set_answer(result: list[str] | OSError) -> None:
        if answer.done():
            return
        if isinstance(result, OSError):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    def work() -> None:
        try:
            result = _addresses(host, port)
        finally:
            _free.release()
        # The loop may be closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(set_answer, result)

    if not _free.acquire(blocking=False):
        raise OSError("too many names are being looked up")
    try:
        # A daemon: the process does not wait for it at its end.
        threading.Thread(target=work, name="look-up", daemon=True).start()
    except RuntimeError as error:
        _free.release()
        raise OSError(str(error)) from None
    return await answer


def _addresses(host: str, port: int) -> list[str] | OSError:
    try:
        entries: list[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError as error:
        return OSError(str(error))
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries))
