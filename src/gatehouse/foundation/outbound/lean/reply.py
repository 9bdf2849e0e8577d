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
        self,
        pool: Pool,
        host: Host,
        *,
        first_byte: float,
        idle: float,
        total: float | None,
        method: str,
        repeatable: bool,
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
            await self._news(self._first_byte)

    async def read(self, limit: int) -> bytes:
        if not self._ended and int(self.headers.get("content-length") or 0) > limit:
            self._abandon()
            raise ReplyTooLarge
        pieces: list[bytes] = []
        size = 0
        if self._inflater is not None:
            async for piece in self._unpacked(self._inflater):
                size = self._within(limit, size + len(piece))
                pieces.append(piece)
        else:
            while self.parts or await self._more():
                piece = self._take()
                size = self._within(limit, size + len(piece))
                pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def chunks(self) -> AsyncIterator[bytes]:
        return self._plain() if self._inflater is None else self._unpacked(self._inflater)

    async def close(self) -> None:
        self._abandon()
        host, self._host = self._host, None
        if host is not None:
            self._pool.leave(host)

    # For the connection.

    @property
    def waiting(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def begin(self, status: int, head: bytes, inflater: Inflater | None) -> None:
        self.status = status
        self._head = head
        self._inflater = inflater

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def wait_anew(self) -> None:
        if self.waiting:
            self._expect(self._first_byte)

    def end(self) -> None:
        self._ended = True
        self._connection = None
        self.wake()

    def fail(self, failure: OutboundFailed) -> None:
        self._failure = failure
        self._connection = None
        self.wake()

    async def _plain(self) -> AsyncIterator[bytes]:
        while self.parts or await self._more():
            yield self._take()

    async def _unpacked(self, inflater: Inflater) -> AsyncIterator[bytes]:
        try:
            while self.parts or await self._more():
                inflater.put(self._take())
                while piece := inflater.take():
                    yield piece
            inflater.end()
        except OutboundFailed:
            self._abandon()
            raise

    async def _more(self) -> bool:
        """Waits for parts, of which there are none. False at the end. Raises `OutboundFailed`."""
        while not self.parts:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return False
            await self._news(self._idle)
        return True

    def _take(self) -> bytes:
        """All that has arrived."""
        parts = self.parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.held = 0
        if self._connection is not None:
            self._connection.resume()
        return data

    def _within(self, limit: int, size: int) -> int:
        if size > limit:
            self._abandon()
            raise ReplyTooLarge
        return size

    def _news(self, seconds: float) -> asyncio.Future[None]:
        """Done when something has arrived, or gone wrong, or will not come."""
        self._expect(seconds)
        self._waiter = waiter = self._loop.create_future()
        return waiter

    def _expect(self, seconds: float) -> None:
        assert self._connection is not None
        deadline = self._loop.time() + seconds
        self._connection.expect(deadline if self.total is None else min(deadline, self.total))

    def _abandon(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self.parts.clear()
            connection.abort()
