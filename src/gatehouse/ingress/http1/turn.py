"""Processes one request to the gateway: receives its body, and writes its response."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from starlette.types import Message

from gatehouse.engine.exchange import Received
from gatehouse.foundation.http.request_body import RequestBody
from gatehouse.ingress.gateway import RequestKind
from gatehouse.ingress.http1.answer import (
    CHUNKED,
    CLOSE,
    CONTINUE,
    closes,
    head,
)
from gatehouse.ingress.http1.head import ParsedHead

#: number of buffered bytes of a body above which reading from the socket is paused
HIGH_WATER_BYTES: Final = 64 * 1024

#: maximum size of a body that is joined with its head and sent in one write
_MAX_JOINED_BYTES: Final = 16 * 1024


class RequestConnection(Protocol):
    """The methods of the client's connection that a request uses."""

    #: header lines at the beginning of every response
    @property
    def defaults(self) -> bytes: ...

    @property
    def stopping(self) -> bool:
        """Return whether the server is stopping, so that no further request is read."""

    def write(self, *pieces: bytes) -> asyncio.Future[None] | None:
        """Send the pieces. If the client reads too slowly, return a future that the caller must await before the next
        write."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class RequestCycle:
    """One request and its response. Implements `answers.ResponseWriter`, and the function `receive` of ASGI.

    `ended` is true when the complete body has arrived, `begun` when the response has started. `keeps_alive` is true if
    the connection may be used for another request.
    """

    __slots__ = (
        "_buffered_bytes", "_chunked", "_connection", "_head", "_loop", "_parts", "_read", "_waiter", "begun", "body",
        "ended", "keeps_alive", "kind", "x",
    )  # fmt: skip

    def __init__(
        self,
        connection: RequestConnection,
        loop: asyncio.AbstractEventLoop,
        kind: RequestKind,
        x: Received,
        request_head: ParsedHead,
    ) -> None:
        self.kind = kind
        self.x = x
        self.keeps_alive = request_head.keeps_alive
        self.ended = True
        self.begun = self._chunked = self._read = False
        self.body: RequestBody | None = None
        self._head = request_head
        self._connection = connection
        self._loop = loop
        self._parts: list[bytes] = []
        self._buffered_bytes = 0
        self._waiter: asyncio.Future[None] | None = None

    # The body of the request.

    def feed_body(self, data: bytes) -> None:
        self._parts.append(data)
        self._buffered_bytes += len(data)
        if self._buffered_bytes > HIGH_WATER_BYTES:
            self._connection.pause_reading()
        self._wake()

    def end_body(self) -> None:
        self.ended = True
        # The request is complete. Reading must continue, because a disconnect is only detected by reading.
        self._connection.resume_reading()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def receive(self) -> Message:
        """Return the part of the body that has arrived since the last call. Wait until there is one."""
        self._connection.resume_reading()
        if not self._read:
            self._read = True
            if self._head.expects_continue and not (self._parts or self.ended or self.begun):
                self._connection.write(CONTINUE)
        while not self._parts and not self.ended:
            self._waiter = waiter = self._loop.create_future()
            await waiter
        data = b"".join(self._parts)
        self._parts.clear()
        self._buffered_bytes = 0
        return {"type": "http.request", "body": data, "more_body": not self.ended}

    # The response.

    async def write_whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        response_head = self._begin(status, headers, f"content-length: {len(body)}\r\n")
        if self._head.method == "HEAD":
            body = b""
        drained = (
            self._connection.write(response_head + body)
            if len(body) <= _MAX_JOINED_BYTES
            else self._connection.write(response_head, body)
        )
        if drained is not None:
            await drained

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        # HTTP/1.0 has no chunked coding. A body without a length ends when the connection is closed.
        self._chunked = not self._head.is_http10
        drained = self._connection.write(self._begin(status, headers, CHUNKED if self._chunked else ""))
        if drained is not None:
            await drained

    async def write_block(self, data: bytes) -> None:
        if not data:
            return
        drained = self._connection.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        if drained is not None:
            await drained

    async def end(self) -> None:
        if self._chunked:
            self._connection.write(b"0\r\n\r\n")

    def _begin(self, status: int, headers: Mapping[str, str], more: str) -> bytes:
        if closes(headers):
            self.keeps_alive = False
        elif not self.keeps_alive or self._connection.stopping:
            self.keeps_alive = False
            more += CLOSE
        response_head = head(status, self._connection.defaults, headers, more)
        self.begun = True
        return response_head
