"""The common parts of both fuzz targets: a transport without a network, and the division of an input into pieces."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

#: Iterations of the event loop after which nothing more can happen. A task that still waits then would wait forever.
TURNS = 200

#: `get_extra_info` must return a real socket. Nothing is written to this pair.
_socket, _socket_peer = socket.socketpair()


class Fault(AssertionError):
    """The tested server misbehaved on this input: a task hangs, or a rule of the protocol is broken."""


class Wire(asyncio.Transport):
    """A transport that records the written data. `closed` is true when either side has closed the connection."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._protocol = protocol
        self.sent = bytearray()
        self.closed = False
        self.paused = False

    def lose(self, error: Exception | None) -> None:
        """Report that the other side has closed the connection."""
        if not self.closed:
            self.closed = True
            self._protocol.connection_lost(error)

    def write(self, data: Any) -> None:
        if not self.closed:
            self.sent += data

    def writelines(self, data: Any) -> None:
        self.write(b"".join(data))

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    abort = close

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Do nothing. The interface requires this method, and the end of the output is not checked."""

    def is_closing(self) -> bool:
        return self.closed

    def is_reading(self) -> bool:
        return not self.paused

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return 0

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"socket": _socket, "peername": ("127.0.0.1", 9), "sockname": ("127.0.0.1", 8)}.get(name, default)


async def feed(wire: Wire, data: bytes, size: int) -> None:
    """Pass data to the protocol in pieces of `size` bytes, as long as the protocol reads."""
    for piece in pieces(data, size):
        for _ in range(TURNS):
            if not wire.paused or wire.closed:
                break
            await asyncio.sleep(0)
        if wire.closed or wire.paused:
            return
        wire.get_protocol().data_received(piece)  # type: ignore[attr-defined]
        await asyncio.sleep(0)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def within_turns(task: "asyncio.Task[Any]") -> None:
    """Wait until a task is done. Raises `Fault` if it is not done after `TURNS` iterations of the event loop."""
    for _ in range(TURNS):
        if task.done():
            return
        await asyncio.sleep(0)
    raise Fault(f"the task hangs: it has not ended after {TURNS} iterations of the event loop")
