"""Reads a request: its relevant headers, client address and id at once, and its body on demand."""

import asyncio
import time
from typing import Final

from starlette.types import Receive, Scope

from gatehouse.engine.exchange import ClientLeft, Received
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import BadRequest, PayloadTooLarge
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.middleware import request_id

#: The headers that are read. The others are not decoded: decoding twenty headers costs more than authentication.
READ: Final = frozenset(
    {
        "authorization",
        "x-api-key",
        "x-request-id",
        "content-length",
        "expect",
        "anthropic-version",
        "anthropic-beta",
        "cache-control",
        "user-agent",
        "traceparent",
        "tracestate",
        "x-gateway-timing",
        "x-gateway-tags",
    }
)
_READ_BYTES: Final = frozenset(name.encode() for name in READ)
#: headers with list values, whose lines are joined (RFC 9110, 5.3)
LISTS: Final = frozenset({"tracestate", "x-gateway-tags"})


#: up to this many bytes of an unread body, the server reads and discards them and keeps the connection open
MAX_DISCARDED_BODY_BYTES: Final = 64 * 1024


class BadLength(BadRequest):
    message = "Content-Length is not a number."


def read_head(scope: Scope, addresses: ClientAddresses, dialect: str | None = None) -> Received:
    """Return the request without its body."""
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _READ_BYTES}
    for list_name in LISTS & headers.keys():
        field = list_name.encode()
        headers[list_name] = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == field)
    return make_received(scope["method"], scope["path"], headers, addresses.of_scope(scope), dialect)


def make_received(
    method: str, path: str, headers: dict[str, str], client_address: str, dialect: str | None = None
) -> Received:
    """Return a request that arrives now. `headers` has the headers of `READ` that the request carries."""
    return Received(
        request_id=request_id.choose(headers.get("x-request-id")),
        method=method,
        path=path,
        headers=headers,
        client_address=client_address,
        received_at=time.time(),
        started=time.monotonic(),
        dialect=dialect,
    )


class BodyTooSlow(BadRequest):
    status = 408
    code = "request_timeout"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"A request's body must be here within {seconds:g} seconds.", headers={"Connection": "close"})


class RequestBody:
    """A request's body, which stays on the wire until `read`. `limit` is in bytes. One deadline covers the whole body.
    `complete` is the whole body where it has arrived with the head."""

    def __init__(
        self, received: Received, receive: Receive, limit: int, deadlines: Deadlines, complete: bytes | None = None
    ) -> None:
        self._content_length = received.headers.get("content-length")
        self._expects_continue = "expect" in received.headers
        self._receive = receive
        self._limit = limit
        self._deadlines = deadlines
        self._complete = complete
        #: set once no part of the body is left on the wire
        self.whole = asyncio.Event()
        if complete is not None:
            self.whole.set()

    @property
    def blocks_reuse(self) -> bool:
        """Return whether too much of the body may be left on the wire for the connection to carry another request. A
        client that waits for 100 Continue may or may not send its body after a different response."""
        if self.whole.is_set():
            return False
        length = self._content_length
        return (
            self._expects_continue or length is None or not length.isdecimal() or int(length) > MAX_DISCARDED_BODY_BYTES
        )

    async def read(self) -> bytes:
        """Return the whole body. Raises `PayloadTooLarge` as soon as the size is known, `BodyTooSlow`, `BadLength` and
        `ClientLeft`."""
        if self._content_length is not None:
            if not self._content_length.isdecimal():
                raise BadLength
            if int(self._content_length) > self._limit:
                raise self._too_large()
        if self._complete is not None:
            if len(self._complete) > self._limit:
                raise self._too_large()
            return self._complete
        try:
            with self._deadlines.one():
                return await self._parts()
        except TimeoutError:
            raise BodyTooSlow(self._deadlines.seconds) from None

    async def _parts(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while not self.whole.is_set():
            part = await self._part()
            size += len(part)
            if size > self._limit:
                raise self._too_large()
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        if not message.get("more_body", False):
            self.whole.set()
        part: bytes = message.get("body", b"")
        return part

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(f"A request's body may have {self._limit} bytes at most.")
