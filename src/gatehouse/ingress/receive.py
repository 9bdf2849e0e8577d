"""A request's head, read once: the few headers that matter, who sent it, and its id."""

import time
from typing import Final

from starlette.types import Receive, Scope

from gatehouse.engine.exchange import Received
from gatehouse.foundation.errors import BadRequest, PayloadTooLarge
from gatehouse.foundation.http import request_id
from gatehouse.foundation.http.addresses import ClientAddresses

#: All others pass unread: decoding twenty headers would cost more than authentication does.
_READ: Final = frozenset(
    {
        b"authorization",
        b"x-api-key",
        b"x-request-id",
        b"content-length",
        b"anthropic-version",
        b"anthropic-beta",
        b"user-agent",
    }
)


class ClientLeft(Exception):
    """The client closed the connection before its answer was complete."""


class BadLength(BadRequest):
    message = "Content-Length is not a number."


def head(scope: Scope, addresses: ClientAddresses, dialect: str | None = None) -> Received:
    """The request without its body."""
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _READ}
    return Received(
        request_id=request_id.choose(headers.get("x-request-id")),
        method=scope["method"],
        path=scope["path"],
        headers=headers,
        client_address=addresses.of_scope(scope),
        received_at=time.time(),
        started=time.monotonic(),
        dialect=dialect,
    )


async def body(received: Received, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises `PayloadTooLarge` as soon as it must be, `ClientLeft`."""
    announced = received.headers.get("content-length")
    if announced is not None:
        if not announced.isdecimal():
            raise BadLength
        if int(announced) > limit:
            raise PayloadTooLarge(f"A request's body may have {limit} bytes at most.")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise PayloadTooLarge(f"A request's body may have {limit} bytes at most.")
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)
