"""A body that is read as fast as its reader reads."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from gatehouse.foundation.outbound import OutboundFailed, ReplyTooLarge
from gatehouse.foundation.outbound.lean.answer import Headers
from gatehouse.foundation.outbound.lean.connection import Connection
from gatehouse.foundation.outbound.lean.inflate import Inflater
from gatehouse.foundation.outbound.lean.pool import Host, Pool


class LeanReply:
    """One answer. See `OutboundReply`. The connection fills `parts`; `held` are the bytes that came since they were
    taken last. It belongs to a call in progress until it is closed, while its connection may serve another already."""

    __slots__ = (
        "_connection",
        "_ended",
        "_failure",
        "_first_byte",
        "_head",
        "_headers",
        "_host",
        "_idle",
        "_inflater",
        "_loop",
        "_pool",
        "_waiter",
        "bodiless",
        "held",
        "parts",
        "repeatable",
        "reused",
        "status",
        "total",
    )

    def __init__(
        self, pool: Pool, host: Host, *, first_byte: float, idle: float, total: float | None, method: str, repeatable: bool
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = pool
        self._host: Host | None = host
        self._first_byte = first_byte
        self._idle = idle
        #: by the loop's time
        self.total = total
        self.bodiless = method == "HEAD"
        self.repeatable = repeatable
        #: whether its connection has served another call before
        self.reused = False
        self.status = 0
        self.parts: list[bytes] = []
        self.held = 0
        self._head = b""
        self._headers: Headers | None = None
        self._inflater: Inflater | None = None
        self._connection: Connection | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._failure: OutboundFailed | None = None

    # For who calls.

    @property
    def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            self._headers = Headers(self._head)
        return self._headers

    async def asked(self, connection: Connection, head: bytes, body: bytes) -> None:
        """Sends the request and waits for the answer's head. Raises `OutboundFailed`."""
        self._connection = connection
        connection.begin(self, head, body)
        while not self.status:
            if self._failure is not None:
                raise self._failure
            await self._wait(self._first_byte)

    async def read(self, limit: int) -> bytes:
        if not self._ended and int(self.headers.get("content-length", 0)) > limit:
            self._abandon()
            raise ReplyTooLarge
        parts: list[bytes] = []
        size = 0
        while chunk := await self._next():
            size += len(chunk)
            if size > limit:
                self._abandon()
                raise ReplyTooLarge
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self._next():
            yield chunk

    async def close(self) -> None:
        self._abandon()
        host, self._host = self._host, None
        if host is not None:
            self._pool.leave(host)

    # For the connection.

    @property
    def waiting(self) -> bool:
        return self._waiter is not None

    def begin(self, status: int, head: bytes, inflater: Inflater | None) -> None:
        self.status = status
        self._head = head
        self._inflater = inflater

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def wait_anew(self) -> None:
        if self._waiter is not None:
            self._expect(self._first_byte)

    def end(self) -> None:
        self._ended = True
        self._connection = None
        self.wake()

    def fail(self, failure: OutboundFailed) -> None:
        self._failure = failure
        self._connection = None
        self.wake()

    async def _next(self) -> bytes:
        """What has arrived; nothing at the end."""
        inflater = self._inflater
        if inflater is None:
            return await self._arrived()
        try:
            while not (piece := inflater.take()):
                packed = await self._arrived()
                if not packed:
                    inflater.end()
                    return b""
                inflater.put(packed)
        except OutboundFailed:
            self._abandon()
            raise
        return piece

    async def _arrived(self) -> bytes:
        parts = self.parts
        while not parts:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return b""
            await self._wait(self._idle)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.held = 0
        if self._connection is not None:
            self._connection.resume()
        return data

    async def _wait(self, seconds: float) -> None:
        self._expect(seconds)
        self._waiter = waiter = self._loop.create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def _expect(self, seconds: float) -> None:
        assert self._connection is not None
        deadline = self._loop.time() + seconds
        self._connection.expect(deadline if self.total is None else min(deadline, self.total))

    def _abandon(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self.parts.clear()
            connection.abort()
