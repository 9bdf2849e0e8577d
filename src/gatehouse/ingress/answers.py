"""An answer on its way to the client, whoever carries it: a whole body, or a stream of blocks until its end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

from starlette.types import Send

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import Answer, Received
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.http.leaving import NOSNIFF

#: the word by which a request is cancelled whose client has left
LEFT: Final = "client left"


class Stopping(Unavailable):
    code = "server_stopping"
    message = "The gateway is being stopped; the answer is incomplete."


class Out(Protocol):
    """One request's way back. Each waits until the client takes more; header names may be in any case."""

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None: ...

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Blocks follow, and `end`; where that does not come, the client sees that something is missing."""

    async def block(self, data: bytes) -> None: ...

    async def end(self) -> None: ...


async def give(answer: Answer, x: Received, out: Out, *, closes: bool = False) -> None:
    """`closes`: the connection carries no other request."""
    headers = {**NOSNIFF, **answer.headers, "X-Request-Id": x.request_id}
    if x.dialect == "anthropic_messages" or "anthropic-version" in x.headers:
        # Where Anthropic's clients read it.
        headers["request-id"] = x.request_id
    if closes:
        headers.setdefault("Connection", "close")
    stream = answer.stream
    if stream is None:
        await out.whole(answer.status, headers, answer.body)
        return
    try:
        await out.begin(answer.status, headers)
        async for block in stream:
            await out.block(block)
        await out.end()
    except asyncio.CancelledError as cancelled:
        await _closed(stream)
        if cancelled.args != (LEFT,) and x.dialect is not None:
            # The server itself stops: the client must not take the cut for the answer's end.
            with contextlib.suppress(Exception):
                await out.block(DIALECTS[x.dialect].render_stream_error(Stopping()))
        raise
    finally:
        await _closed(stream)


async def _closed(stream: AsyncIterator[bytes]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


class AsgiOut:
    """By the messages of an ASGI server."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        pairs = [*_pairs(headers), (b"content-length", b"%d" % len(body))]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": _pairs(headers)})

    async def block(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})


def _pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    # A catalog may name its models in any script: what a header cannot hold is told by the body's `model`.
    return [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
