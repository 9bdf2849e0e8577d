"""Messages between the processes of one machine, over a Unix socket. A frame is the length of the message in four
bytes, little-endian, and the message."""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: Maximum length of a message. Both sides refuse longer messages.
MAX_FRAME_BYTES: Final = 128 * 1024**2
_LENGTH_PREFIX_BYTES: Final = 4


class TooLong(Exception):
    """A message has more than `MAX_FRAME_BYTES` bytes."""


def framed(data: bytes) -> bytes:
    """Return the frame of a message. Raises `TooLong`."""
    if len(data) > MAX_FRAME_BYTES:
        raise TooLong
    return len(data).to_bytes(_LENGTH_PREFIX_BYTES, "little") + data


async def read(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next message, or None at the end of the connection. Raises `TooLong`."""
    try:
        size = int.from_bytes(await reader.readexactly(_LENGTH_PREFIX_BYTES), "little")
        if size > MAX_FRAME_BYTES:
            raise TooLong
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, OSError):
        return None


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """Yield a short path of a socket. The operating system refuses paths of more than about a hundred bytes."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # On a system without /proc, the path of the home folder must be short.
        yield f"/proc/self/fd/{directory}/{path.name}" if sys.platform == "linux" else str(path)
    finally:
        os.close(directory)


def private_listener(path: Path) -> socket.socket:
    """Return a listening socket at the path. Only the owner of this process may connect."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path.unlink(missing_ok=True)
    with reachable(path) as address:
        before = os.umask(0o177)
        listener.bind(address)
        os.umask(before)
    return listener
