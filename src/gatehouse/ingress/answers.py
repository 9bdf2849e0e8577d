"""Sends an answer to the client, as a complete body or as a stream of blocks. It works with any server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

from starlette.types import Send

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import Answer, Received
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.http.middleware.added_headers import NOSNIFF

#: the cancellation message of a request whose client has disconnected
CLIENT_LEFT_MESSAGE: Final = "client left"
#: dialects whose clients read the request's id from `request-id`
_ANTHROPIC_DIALECTS: Final = frozenset({"anthropic_messages", "anthropic_token_count"})


class ServerStopping(Unavailable):
    code = "server_stopping"
    message = "The gateway is being stopped; the answer is incomplete."


class ResponseWriter(Protocol):
    """Writes the response to one request. Each method waits if the client reads too slowly. Header names may have any
    case."""

    async def write_whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None: ...

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Start a stream. Calls of `write_block` and one call of `end` follow. Without `end`, the client receives an
        incomplete response."""

    async def write_block(self, data: bytes) -> None: ...

    async def end(self) -> None: ...


async def send_answer(answer: Answer, x: Received, writer: ResponseWriter, *, closes: bool = False) -> None:
    """Send an answer. If `closes` is true, the connection is closed after this answer."""
    headers = {**NOSNIFF, **answer.headers, "X-Request-Id": x.request_id}
    if x.dialect in _ANTHROPIC_DIALECTS or "anthropic-version" in x.headers:
        # Clients of Anthropic read the id of the request from this header.
        headers["request-id"] = x.request_id
    if closes:
        headers.setdefault("Connection", "close")
    stream = answer.stream
    if stream is None:
        await writer.write_whole(answer.status, headers, answer.body)
        return
    try:
        await writer.begin(answer.status, headers)
        async for block in stream:
            await writer.write_block(block)
        await writer.end()
    except asyncio.CancelledError as cancelled:
        await _close_stream(stream)
        if cancelled.args != (CLIENT_LEFT_MESSAGE,) and x.dialect is not None:
            # The server is stopping. An error event informs the client that the answer is incomplete.
            with contextlib.suppress(Exception):
                await writer.write_block(DIALECTS[x.dialect].render_stream_error(ServerStopping()))
        raise
    finally:
        await _close_stream(stream)


async def _close_stream(stream: AsyncIterator[bytes]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


class AsgiWriter:
    """Writes a response as messages to an ASGI server."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def write_whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        pairs = [*_pairs(headers), (b"content-length", b"%d" % len(body))]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": _pairs(headers)})

    async def write_block(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})


def _pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    # Names of models may contain characters outside Latin-1. The `model` field of the body has the complete name.
    return [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
