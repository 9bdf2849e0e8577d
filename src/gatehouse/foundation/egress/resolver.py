"""Resolves host names. Each look-up has a thread of its own.

The system's resolver blocks a thread for ten seconds or more if a name's servers do not answer, and cannot be
cancelled. The event loop's default executor has few threads: there, a few such names would block all other look-ups.
"""

import asyncio
import contextlib
import socket
import threading
from typing import Any, Final

#: maximum number of concurrent look-ups of a process
MAX_CONCURRENT_LOOKUPS: Final = 256

_free: Final = threading.BoundedSemaphore(MAX_CONCURRENT_LOOKUPS)


async def look_up(host: str, port: int) -> list[str]:
    """Returns the name's addresses without duplicates. Raises `OSError` if the name cannot be resolved, or if too many
    look-ups are running. If the caller is cancelled, the thread continues until its look-up ends."""
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
        # A daemon thread: the process does not wait for it when it exits.
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
