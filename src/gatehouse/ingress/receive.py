"""A request's head, read once: the few headers that matter, who sent it, and its id. And its body, when asked for."""

import asyncio
import time
from typing import Final

from starlette.types import Receive, Scope

from gatehouse.engine.exchange import ClientLeft, Received
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import BadRequest, PayloadTooLarge
from gatehouse.foundation.http import request_id
from gatehouse.foundation.http.addresses import ClientAddresses

#: All others pass unread: decoding twenty headers would cost more than authentication does.
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
_READ: Final = frozenset(name.encode() for name in READ)
#: Those that are lists, of which each line is a part (RFC 9110, 5.3).
LISTS: Final = frozenset({"tracestate", "x-gateway-tags"})


#: The server takes as much of an unread body off the wire by itself, and keeps the connection.
SMALL_BYTES: Final = 64 * 1024


class BadLength(BadRequest):
    message = "Content-Length is not a number."


def head(scope: Scope, addresses: ClientAddresses, dialect: str | None = None) -> Received:
    """The request without its body."""
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _READ}
    for listed in LISTS & headers.keys():
        field = listed.encode()
        headers[listed] = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == field)
    return received(scope["method"], scope["path"], headers, addresses.of_scope(scope), dialect)


def received(
    method: str, path: str, headers: dict[str, str], client_address: str, dialect: str | None = None
) -> Received:
    """A request that has arrived now. `headers` are those of `READ` that it has."""
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


class Body:
    """A request's body on the wire, of which nothing is held before `read`. `limit` is in bytes; all of it has
    one deadline. `here` is a body that has arrived with its head."""

    def __init__(
        self, received: Received, receive: Receive, limit: int, deadlines: Deadlines, here: bytes | None = None
    ) -> None:
        self._announced = received.headers.get("content-length")
        self._withheld = "expect" in received.headers
        self._receive = receive
        self._limit = limit
        self._deadlines = deadlines
        self._here = here
        #: set once nothing of it is left on the wire
        self.whole = asyncio.Event()
        if here is not None:
            self.whole.set()

    @property
    def in_the_way(self) -> bool:
        """Whether so much of it may be left on the wire that the connection should not carry another request. Nobody
        knows whether a client that waits for 100 Continue sends its body after another answer."""
        if self.whole.is_set():
            return False
        announced = self._announced
        return self._withheld or announced is None or not announced.isdecimal() or int(announced) > SMALL_BYTES

    async def read(self) -> bytes:
        """All of it. Raises `PayloadTooLarge` as soon as it must be, `BodyTooSlow`, `BadLength` and `ClientLeft`."""
        if self._announced is not None:
            if not self._announced.isdecimal():
                raise BadLength
            if int(self._announced) > self._limit:
                raise self._too_large()
        if self._here is not None:
            if len(self._here) > self._limit:
                raise self._too_large()
            return self._here
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
