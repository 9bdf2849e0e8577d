"""One request that the gateway answers: its body as it comes, and its answer on the way."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from starlette.types import Message

from gatehouse.engine.exchange import Received
from gatehouse.ingress.gateway import Kind
from gatehouse.ingress.lane.answer import CHUNKS, CLOSE, CONTINUE, closes, head
from gatehouse.ingress.lane.head import Head
from gatehouse.ingress.receive import Body

#: More of a body is not taken off the wire before somebody reads it.
HIGH_WATER: Final = 64 * 1024

#: A longer body is not copied behind its head.
_JOINED: Final = 16 * 1024


class Line(Protocol):
    """The connection, as far as a request knows it."""

    #: lines that every answer begins with
    @property
    def defaults(self) -> bytes: ...

    @property
    def stopping(self) -> bool:
        """Whether no other request is to come."""

    def write(self, *pieces: bytes) -> asyncio.Future[None] | None:
        """Sends them. What is given back is to be waited for before more is sent: the client reads slowly."""

    def hold(self) -> None:
        """Nothing more is read from the client."""

    def go_on(self) -> None: ...


class Turn:
    """An `answers.Out` and an ASGI `receive`. `ended`: its body has come to its end; `begun`: the client has been told
    something; `keeps`: the connection may carry another request."""

    __slots__ = (
        "_asked", "_chunked", "_held", "_line", "_loop", "_parts", "_read", "_waiter", "begun", "body", "ended",
        "keeps", "kind", "x",
    )  # fmt: skip

    def __init__(self, line: Line, loop: asyncio.AbstractEventLoop, kind: Kind, x: Received, asked: Head) -> None:
        self.kind = kind
        self.x = x
        self.keeps = asked.keeps
        self.ended = True
        self.begun = self._chunked = self._read = False
        self.body: Body | None = None
        self._asked = asked
        self._line = line
        self._loop = loop
        self._parts: list[bytes] = []
        self._held = 0
        self._waiter: asyncio.Future[None] | None = None

    # Its body.

    def take(self, data: bytes) -> None:
        self._parts.append(data)
        self._held += len(data)
        if self._held > HIGH_WATER:
            self._line.hold()
        self._wake()

    def over(self) -> None:
        self.ended = True
        # Nothing more is received, and only who reads on sees that the client leaves.
        self._line.go_on()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def receive(self) -> Message:
        """What has arrived since it was asked for last."""
        self._line.go_on()
        if not self._read:
            self._read = True
            if self._asked.expects and not (self._parts or self.ended or self.begun):
                self._line.write(CONTINUE)
        while not self._parts and not self.ended:
            self._waiter = waiter = self._loop.create_future()
            await waiter
        data = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        return {"type": "http.request", "body": data, "more_body": not self.ended}

    # Its answer.

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        top = self._begin(status, headers, f"content-length: {len(body)}\r\n")
        if self._asked.method == "HEAD":
            body = b""
        full = self._line.write(top + body) if len(body) <= _JOINED else self._line.write(top, body)
        if full is not None:
            await full

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        # HTTP/1.0 knows no chunks: what has no length ends with the connection.
        self._chunked = not self._asked.old
        full = self._line.write(self._begin(status, headers, CHUNKS if self._chunked else ""))
        if full is not None:
            await full

    async def block(self, data: bytes) -> None:
        if not data:
            return
        full = self._line.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        if full is not None:
            await full

    async def end(self) -> None:
        if self._chunked:
            self._line.write(b"0\r\n\r\n")

    def _begin(self, status: int, headers: Mapping[str, str], more: str) -> bytes:
        if closes(headers):
            self.keeps = False
        elif not self.keeps or self._line.stopping:
            self.keeps = False
            more += CLOSE
        top = head(status, self._line.defaults, headers, more)
        self.begun = True
        return top
