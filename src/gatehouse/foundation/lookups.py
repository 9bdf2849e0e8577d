"""Looks names up, each in a thread of its own.

The system's resolver keeps a thread for ten seconds and more where a name's servers do not answer, and cannot be told
to stop. The event loop has a handful of threads: as many such names, and nobody else's is found any more.
"""

import asyncio
import contextlib
import socket
import threading
from typing import Any, Final

#: Names that a process looks up at once.
MOST: Final = 256

_free: Final = threading.BoundedSemaphore(MOST)


async def look_up(host: str, port: int) -> list[str]:
    """The name's addresses, each once. Raises `OSError`, also where too many names are being looked up already. The
    thread goes on when the caller is cancelled."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[list[str]] = loop.create_future()

    def tell(result: list[str] | OSError) -> None:
        if ended.done():
            return
        if isinstance(result, OSError):
            ended.set_exception(result)
        else:
            ended.set_result(result)

    def work() -> None:
        try:
            result = _addresses(host, port)
        finally:
            _free.release()
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, result)

    if not _free.acquire(blocking=False):
        raise OSError("too many names are being looked up")
    try:
        # Nobody waits for it when the process ends.
        threading.Thread(target=work, name="look-up", daemon=True).start()
    except RuntimeError as error:
        _free.release()
        raise OSError(str(error)) from None
    return await ended


def _addresses(host: str, port: int) -> list[str] | OSError:
    try:
        found: list[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError as error:
        return OSError(str(error))
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
