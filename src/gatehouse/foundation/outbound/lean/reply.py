"""A response whose body is read with back-pressure: reading from the socket pauses while the reader is slow."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from gatehouse.foundation.outbound import OutboundFailed, ReplyTooLarge
from gatehouse.foundation.outbound.lean.answer import Headers
from gatehouse.foundation.outbound.lean.connection import LeanConnection
from gatehouse.foundation.outbound.lean.inflate import Inflater
from gatehouse.foundation.outbound.lean.pool import ConnectionPool, HostPool


class LeanReply:
    """One response (see `OutboundReply`). The connection appends data of the body to `parts`. `buffered_bytes` is the
    size of these parts as received. The call is in progress until the reply is closed, even if its connection already
    serves another call."""

    __slots__ = (
        "_connection",
        "_ended",
        "_failure",
        "_first_byte_seconds",
        "_head",
        "_headers",
        "_host",
        "_idle_seconds",
        "_inflater",
        "_loop",
        "_pool",
        "_waiter",
        "bodiless",
        "buffered_bytes",
        "idempotent",
        "parts",
        "reused",
        "status",
        "total_deadline",
    )

    def __init__(
        self,
        pool: ConnectionPool,
        host: HostPool,
        *,
        first_byte: float,
        idle: float,
        total_deadline: float | None,
        method: str,
        idempotent: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = pool
        self._host: HostPool | None = host
        self._first_byte_seconds = first_byte
        self._idle_seconds = idle
        #: in the loop's time
        self.total_deadline = total_deadline
        self.bodiless = method == "HEAD"
        self.idempotent = idempotent
        self.reused = False
        self.status = 0
        self.parts: list[bytes] = []
        self.buffered_bytes = 0
        self._head = b""
        self._headers: Headers | None = None
        self._inflater: Inflater | None = None
        self._connection: LeanConnection | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._failure: OutboundFailed | None = None

    # Called by the client.

    @property
    def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            self._headers = Headers(self._head)
        return self._headers

    async def send_request(self, connection: LeanConnection, head: bytes, body: bytes) -> None:
        """Sends the request and waits for the head of the response. Raises `OutboundFailed`."""
        self._connection = connection
        connection.begin(self, head, body)
        while not self.status:
            if self._failure is not None:
                raise self._failure
            await self._wait_for_data(self._first_byte_seconds)

    async def read(self, limit: int) -> bytes:
        if not self._ended and int(self.headers.get("content-length") or 0) > limit:
            self._abandon()
            raise ReplyTooLarge
        pieces: list[bytes] = []
        size = 0
        if self._inflater is not None:
            async for piece in self._decompressed(self._inflater):
                size = self._checked_size(limit, size + len(piece))
                pieces.append(piece)
        else:
            while self.parts or await self._more():
                piece = self._take()
                size = self._checked_size(limit, size + len(piece))
                pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def chunks(self) -> AsyncIterator[bytes]:
        return self._plain() if self._inflater is None else self._decompressed(self._inflater)

    async def close(self) -> None:
        self._abandon()
        host, self._host = self._host, None
        if host is not None:
            self._pool.leave(host)

    # Called by the connection.

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

    def restart_first_byte_timeout(self) -> None:
        if self.waiting:
            self._set_deadline(self._first_byte_seconds)

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

    async def _decompressed(self, inflater: Inflater) -> AsyncIterator[bytes]:
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
        """Waits until `parts` has data and returns True. Returns False at the end of the body. Raises
        `OutboundFailed`."""
        while not self.parts:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return False
            await self._wait_for_data(self._idle_seconds)
        return True

    def _take(self) -> bytes:
        """Returns all buffered data."""
        parts = self.parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.buffered_bytes = 0
        if self._connection is not None:
            self._connection.resume()
        return data

    def _checked_size(self, limit: int, size: int) -> int:
        if size > limit:
            self._abandon()
            raise ReplyTooLarge
        return size

    def _wait_for_data(self, seconds: float) -> asyncio.Future[None]:
        """Returns a future that is done when data has arrived or the call has ended or failed."""
        self._set_deadline(seconds)
        self._waiter = waiter = self._loop.create_future()
        return waiter

    def _set_deadline(self, seconds: float) -> None:
        assert self._connection is not None
        deadline = self._loop.time() + seconds
        self._connection.set_deadline(deadline if self.total_deadline is None else min(deadline, self.total_deadline))

    def _abandon(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self.parts.clear()
            connection.abort()
