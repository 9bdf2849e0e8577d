"""A provider's good answer, in the client's dialect."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.sse import Splitter
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import guess
from gatehouse.engine.providers.failure import ProviderFailed, of_transport
from gatehouse.engine.providers.streams import Stream
from gatehouse.foundation.outbound import OutboundFailed, OutboundReply

#: How long a provider may take to end a stream whose last event was seen.
END_SECONDS = 0.5

#: Of the client's answer, whoever gave it.
JSON: Final[Mapping[str, str]] = {"content-type": "application/json"}
EVENTS: Final[Mapping[str, str]] = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}

#: How much of a stream that is said again comes at once.
_AGAIN_BYTES: Final = 16_384

_NOTHING: Final = Usage()


class _Said:
    """The stream of an answer that is all there. Nothing is used for it: that was when it was given first."""

    __slots__ = ("finished", "usage")

    complete = True
    output_estimate = 0

    def __init__(self) -> None:
        self.usage: Usage | None = Usage()
        self.finished = False

    def push(self, chunk: bytes) -> bytes:
        return chunk

    def end(self) -> bytes:
        return b""


class Reply:
    """Either `body` or `events` is set. `headers` are for the client. `model` in it is as the client named it.

    `events` gives one or more whole events at a time, the first without a wait, and raises `ProviderFailed` when the
    stream breaks. Close always: an unfinished call is cancelled upstream.

    `usage` is what the provider told. Where it told none, or its stream was left or broke before the end, it is at
    least an estimate, since a provider bills what it made: see `usage_estimated`.
    """

    __slots__ = ("_call", "_sent_bytes", "_stream", "_upstream", "_usage", "body", "events", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], *, body: bytes | None = None) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.events: AsyncIterator[bytes] | None = None
        self._usage: Usage | None = None
        self._stream: Stream | None = None
        self._upstream: OutboundReply | None = None
        self._call: ModelCall | None = None
        self._sent_bytes = 0

    @classmethod
    def whole(cls, status: int, body: bytes, usage: Usage | None, call: ModelCall, *, sent_bytes: int) -> "Reply":
        """The answer to `call`, for which so much was sent to the provider."""
        reply = cls(status, JSON, body=body)
        reply._usage, reply._call, reply._sent_bytes = usage, call, sent_bytes
        return reply

    @classmethod
    async def streaming(cls, upstream: OutboundReply, stream: Stream, call: ModelCall, *, sent_bytes: int) -> "Reply":
        """Waits for the first event. Raises `ProviderFailed` or `OutboundFailed`."""
        reply = cls(upstream.status, EVENTS)
        reply._upstream = upstream
        reply._stream = stream
        reply._call, reply._sent_bytes = call, sent_bytes
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

    @classmethod
    def again(cls, answer: bytes, *, stream: bool) -> "Reply":
        """A complete answer that was given before, as a body or as a stream's events."""
        if not stream:
            said_again = cls(200, JSON, body=answer)
            said_again._usage = Usage()
            return said_again
        reply = cls(200, EVENTS)
        reply._stream = said = _Said()
        reply.events = _again(answer, said)
        return reply

    @property
    def usage(self) -> Usage:
        told = self._told
        if told is None or (self._stream is not None and self.usage_estimated):
            return self._estimate(told)
        return told

    @property
    def usage_estimated(self) -> bool:
        """Whether the usage was not told, or not told for good because a stream did not come to its end."""
        stream = self._stream
        return self._told is None or (stream is not None and not (stream.complete or stream.finished))

    @property
    def _told(self) -> Usage | None:
        told = self._usage if self._stream is None else self._stream.usage
        # Who was called and says nothing but zeros does not count.
        return None if told == _NOTHING and self._call is not None else told

    @property
    def finished(self) -> bool:
        """Whether the block that `events` gave last holds the stream's own end."""
        return self._stream is not None and self._stream.finished

    def _estimate(self, told: Usage | None) -> Usage:
        """By sizes, but never less than the provider has told so far."""
        assert self._call is not None
        known = told or Usage(input_tokens=guess.read(self._call, self._sent_bytes))
        made = guess.written(self._call, self.body or b"{}") if self._stream is None else self._stream.output_estimate
        return msgspec.structs.replace(known, output_tokens=max(known.output_tokens, made))

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
    except (OutboundFailed, ProviderFailed, TimeoutError):
        pass


async def _again(answer: bytes, said: _Said) -> AsyncIterator[bytes]:
    splitter = Splitter()
    for start in range(0, len(answer), _AGAIN_BYTES):
        block = splitter.push(answer[start : start + _AGAIN_BYTES])
        if start + _AGAIN_BYTES >= len(answer):
            block += splitter.take_rest()
            said.finished = True
        if block:
            yield block
        # Nothing here waits for a network, and a long answer may have a long way to go: others get their turn.
        await asyncio.sleep(0)
