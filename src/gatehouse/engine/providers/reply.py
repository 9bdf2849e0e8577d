"""A provider's good answer, in the client's dialect."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.failure import ProviderFailed, of_transport
from gatehouse.engine.providers.streams import Stream
from gatehouse.foundation.outbound import OutboundFailed, OutboundReply

#: How long a provider may take to end a stream whose last event was seen.
END_SECONDS = 0.5


class Reply:
    """Either `body` or `events` is set. `headers` are for the client. `model` in it is as the provider named it.

    `events` gives one or more whole events at a time, the first without a wait, and raises `ProviderFailed` when the
    stream breaks. `usage` is as known so far: complete at the end, and what was told before a break. Close always:
    an unfinished call is cancelled upstream.
    """

    __slots__ = ("_chunks", "_first", "_stream", "_upstream", "_usage", "body", "events", "headers", "status")

    def __init__(
        self, status: int, headers: Mapping[str, str], *, usage: Usage | None = None, body: bytes | None = None
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.events: AsyncIterator[bytes] | None = None
        self._usage = usage
        self._stream: Stream | None = None
        self._upstream: OutboundReply | None = None

    @classmethod
    async def streaming(cls, upstream: OutboundReply, stream: Stream, headers: Mapping[str, str]) -> "Reply":
        """Waits for the first event. Raises `ProviderFailed` or `OutboundFailed`."""
        reply = cls(upstream.status, headers)
        reply._upstream = upstream
        reply._stream = stream
        chunks = upstream.chunks()
        first = b""
        async for chunk in chunks:
            first = stream.push(chunk)
            if first:
                break
        else:
            # It ended before anything was worth sending; if it broke, this tells.
            first = stream.end()
        reply.events = _events(first, chunks, stream, upstream.status)
        return reply

    @property
    def usage(self) -> Usage | None:
        return self._stream.usage if self._stream is not None else self._usage

    async def close(self) -> None:
        if self._upstream is not None:
            await self._upstream.close()


async def _events(first: bytes, chunks: AsyncIterator[bytes], stream: Stream, status: int) -> AsyncIterator[bytes]:
    if first:
        yield first
    try:
        if not stream.finished:
            async for chunk in chunks:
                block = stream.push(chunk)
                if block:
                    yield block
                if stream.finished:
                    break
        block = stream.end()
        if block:
            yield block
    except OutboundFailed as error:
        raise of_transport(error, status) from None
    except ProviderFailed as error:
        error.status = status
        raise
    await _to_the_end(chunks)


async def _to_the_end(chunks: AsyncIterator[bytes]) -> None:
    """Only a body read to its end gives its connection back; one that will not end after its last word is closed."""
    try:
        async with asyncio.timeout(END_SECONDS):
            async for _ in chunks:
                pass
    except (OutboundFailed, TimeoutError):
        pass
