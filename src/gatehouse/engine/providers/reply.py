"""A provider's successful answer, in the client's dialect."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.sse import Splitter
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers import guess
from gatehouse.engine.providers.failure import ProviderFailed, of_transport
from gatehouse.engine.providers.streams import Stream
from gatehouse.foundation.outbound import OutboundFailed, OutboundReply

#: How long a provider may take to close a stream after its last event.
END_TIMEOUT_SECONDS = 0.5

#: Headers of the client's answer, for all providers.
JSON: Final[Mapping[str, str]] = {"content-type": "application/json"}
TEXT: Final[Mapping[str, str]] = {"content-type": "text/plain; charset=utf-8"}
EVENTS: Final[Mapping[str, str]] = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}

#: Header of a token count: `provider` if the provider counted, or `estimate`.
COUNTED_BY: Final = "X-Gateway-Token-Count"
#: Block size of a cached stream.
_REPLAY_BLOCK_BYTES: Final = 16_384

_NO_USAGE: Final = Usage()


class _ReplayedStream:
    """The stream of a cached answer. Its usage is zero: it was counted when the answer was first given."""

    __slots__ = ("finished", "lost_parts", "usage")

    complete = True
    output_estimate = 0

    def __init__(self, lost_parts: tuple[str, ...]) -> None:
        self.lost_parts = lost_parts
        self.usage: Usage | None = Usage()
        self.finished = False

    def push(self, chunk: bytes) -> bytes:
        return chunk

    def end(self) -> bytes:
        return b""


class Reply:
    """A successful answer. Either `body` or `events` is set. `headers` are for the client. The answer contains the name
    of the model that the client requested.

    `events` yields one or more whole events at a time, the first without a wait, and raises `ProviderFailed` if the
    stream breaks. Always call `close`: an unfinished call is cancelled upstream.

    `usage` returns the usage that the provider reported. If the provider reported none, or the stream was abandoned or
    broke, it is at least an estimate, because a provider charges all tokens that it produced.
    """

    __slots__ = (
        "_call", "_sent_bytes", "_stream", "_upstream", "_usage", "_whole_lost_parts", "body", "dropped", "events",
        "exhausted_seconds", "headers", "status",
    )  # fmt: skip

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        events: AsyncIterator[bytes] | None = None,
        usage: Usage | None = None,
        stream: Stream | None = None,
        upstream: OutboundReply | None = None,
        call: ModelCall | None = None,
        sent_bytes: int = 0,
        dropped: str = "",
        lost_parts: tuple[str, ...] = (),
        exhausted_seconds: float | None = None,
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.events = events
        #: the names of the client's fields that the provider did not receive, and of the parts of the answer that the
        #: client does not receive, separated by commas
        self.dropped = lost.extended(dropped, lost_parts) if lost_parts else dropped
        #: seconds until the provider's rate limit resets; None if this answer has not exhausted the limit
        self.exhausted_seconds = exhausted_seconds
        self._usage = usage
        self._stream = stream
        self._upstream = upstream
        self._call = call
        self._sent_bytes = sent_bytes
        self._whole_lost_parts = lost_parts

    @classmethod
    def whole(
        cls,
        status: int,
        body: bytes,
        usage: Usage | None,
        call: ModelCall,
        *,
        sent_bytes: int,
        dropped: str = "",
        lost_parts: tuple[str, ...] = (),
        exhausted_seconds: float | None = None,
    ) -> "Reply":
        """Return a whole answer to `call`, for which `sent_bytes` were sent to the provider. `lost_parts` are the parts
        of the provider's answer that it lacks."""
        return cls(
            status,
            TEXT if call.answer_form == "text" else JSON,
            body=body,
            usage=usage,
            call=call,
            sent_bytes=sent_bytes,
            dropped=dropped,
            lost_parts=lost_parts,
            exhausted_seconds=exhausted_seconds,
        )

    @classmethod
    def count(cls, body: bytes, *, estimated: bool) -> "Reply":
        """Return a token count, which costs nothing."""
        return cls(200, {**JSON, COUNTED_BY: "estimate" if estimated else "provider"}, body=body, usage=Usage())

    @classmethod
    async def streaming(
        cls,
        upstream: OutboundReply,
        stream: Stream,
        call: ModelCall,
        *,
        sent_bytes: int,
        headers: Mapping[str, str] = EVENTS,
        dropped: str = "",
        exhausted_seconds: float | None = None,
    ) -> "Reply":
        """Return a stream once its first event has arrived. Raises `ProviderFailed` or `OutboundFailed`."""
        chunks = upstream.chunks()
        first = b""
        async for chunk in chunks:
            first = stream.push(chunk)
            if first:
                break
        else:
            # The stream ended before its first event; this raises if it broke.
            first = stream.end()
        return cls(
            upstream.status,
            headers,
            events=_events(first, chunks, stream, upstream.status),
            stream=stream,
            upstream=upstream,
            call=call,
            sent_bytes=sent_bytes,
            dropped=lost.extended(dropped, stream.lost_parts) if stream.lost_parts else dropped,
            exhausted_seconds=exhausted_seconds,
        )

    @classmethod
    def again(cls, answer: bytes, *, stream: bool, dropped: str = "", lost_parts: tuple[str, ...] = ()) -> "Reply":
        """Return a cached answer, as a body or as a stream's events. `lost_parts` are the parts of the provider's
        answer that it lacks."""
        if not stream:
            return cls(200, JSON, body=answer, usage=Usage(), dropped=dropped, lost_parts=lost_parts)
        replayed = _ReplayedStream(lost_parts)
        return cls(
            200, EVENTS, events=_replay(answer, replayed), stream=replayed, dropped=dropped, lost_parts=lost_parts
        )

    def observed(self, observe: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]) -> "Reply":
        """Return this stream with its events passed through `observe`, which must not change them."""
        assert self.events is not None
        return Reply(
            self.status,
            self.headers,
            events=observe(self.events),
            usage=self._usage,
            stream=self._stream,
            upstream=self._upstream,
            call=self._call,
            sent_bytes=self._sent_bytes,
            dropped=self.dropped,
            exhausted_seconds=self.exhausted_seconds,
        )

    def usage(self) -> tuple[Usage, bool]:
        """Return the usage, and whether it is estimated because it was not reported, or because it is not final: the
        stream did not reach its end."""
        stream = self._stream
        usage = self._usage if stream is None else stream.usage
        # If a provider was called and reports only zeros, it does not count tokens.
        if usage is None or (usage == _NO_USAGE and self._call is not None):
            return self._estimate(None), True
        if stream is not None and not (stream.complete or stream.finished):
            return self._estimate(usage), True
        return usage, False

    @property
    def lost_parts(self) -> tuple[str, ...]:
        """The names of the parts of the provider's answer that the client does not receive. Those of a stream are
        complete at its end."""
        return self._whole_lost_parts if self._stream is None else self._stream.lost_parts

    @property
    def finished(self) -> bool:
        """Return whether the last block of `events` contains the stream's end event."""
        return self._stream is not None and self._stream.finished

    def _estimate(self, reported: Usage | None) -> Usage:
        """Return an estimate from the sizes. It is not lower than the usage that the provider has reported so far."""
        assert self._call is not None
        usage = reported or Usage(input_tokens=guess.read(self._call, self._sent_bytes))
        written = (
            guess.written(self._call, self.body or b"{}") if self._stream is None else self._stream.output_estimate
        )
        return msgspec.structs.replace(usage, output_tokens=max(usage.output_tokens, written))

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
    await _drain(chunks)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read a body to its end, so that its connection is reused. A body that does not end after its last event is
    abandoned, and its connection closed."""
    try:
        async with asyncio.timeout(END_TIMEOUT_SECONDS):
            async for _ in chunks:
                pass
    except (OutboundFailed, ProviderFailed, TimeoutError):
        pass


async def _replay(answer: bytes, stream: _ReplayedStream) -> AsyncIterator[bytes]:
    splitter = Splitter()
    for start in range(0, len(answer), _REPLAY_BLOCK_BYTES):
        block = splitter.push(answer[start : start + _REPLAY_BLOCK_BYTES])
        if start + _REPLAY_BLOCK_BYTES >= len(answer):
            block += splitter.take_rest()
            stream.finished = True
        if block:
            yield block
        # Yield to other tasks: nothing here waits for a network, and the answer may be long.
        await asyncio.sleep(0)
