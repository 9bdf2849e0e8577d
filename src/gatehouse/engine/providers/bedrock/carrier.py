"""Between Bedrock and the network: what goes out is signed, what comes back as binary events becomes server-sent
ones."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

import msgspec

from gatehouse.engine.conversation.sse import frame as event
from gatehouse.engine.providers.bedrock.event_stream import CONTENT_TYPE, BadFrame, Frame, Frames
from gatehouse.engine.providers.bedrock.signing import Identity, Scope, signed
from gatehouse.engine.providers.failure import ProviderFailed, of_status
from gatehouse.foundation.outbound import BrokenOff, Outbound, OutboundReply, OutboundRequest

_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
#: What an exception in a stream would have been as a status.
_STATUS: Final = {
    "validationException": 400,
    "accessDeniedException": 403,
    "modelTimeoutException": 408,
    "modelStreamErrorException": 424,
    "throttlingException": 429,
    "serviceUnavailableException": 503,
}


class Signing:
    """An `Outbound` whose `send` raises `ProviderFailed` too, where there is nobody who could sign."""

    def __init__(self, outbound: Outbound, scope: Scope, who: Callable[[], Awaitable[Identity]]) -> None:
        self._outbound = outbound
        self._scope = scope
        self._who = who

    async def send(self, request: OutboundRequest) -> OutboundReply:
        who = await self._who()
        headers = signed(request.method, request.url, request.body, identity=who, scope=self._scope)
        reply = await self._outbound.send(msgspec.structs.replace(request, headers={**request.headers, **headers}))
        return Told(reply) if reply.headers.get("content-type", "").startswith(CONTENT_TYPE) else reply

    async def close(self) -> None:
        """What is underneath belongs to others."""


class Told:
    """A reply whose frames are told as server-sent events: the frame's type is the event's name, its payload the
    data. An exception among them is the failure that it would have been as an answer of its own."""

    __slots__ = ("_reply",)

    def __init__(self, reply: OutboundReply) -> None:
        self._reply = reply

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._reply.headers

    async def read(self, limit: int) -> bytes:
        return await self._reply.read(limit)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Raises `ProviderFailed` too."""
        frames = Frames()
        async for chunk in self._reply.chunks():
            ready, fault = _ready(frames, chunk)
            if ready:
                yield ready
            if fault is not None:
                raise fault
        if not frames.empty:
            raise BrokenOff

    async def close(self) -> None:
        await self._reply.close()


def _ready(frames: Frames, chunk: bytes) -> tuple[bytes, ProviderFailed | None]:
    """The events in a chunk, and what came after them if it was a fault."""
    events: list[bytes] = []
    try:
        events.extend(_event(frame) for frame in frames.push(chunk))
    except BadFrame:
        return b"".join(events), ProviderFailed("bad_reply")
    except ProviderFailed as failed:
        return b"".join(events), failed
    return b"".join(events), None


def _event(frame: Frame) -> bytes:
    kind = frame.headers.get(":message-type")
    if kind == "event":
        # A line break would end the data; JSON has them only between its parts.
        return event(frame.payload.translate(_ONE_LINE), frame.headers.get(":event-type"))
    if kind == "exception":
        raise of_status(_STATUS.get(frame.headers.get(":exception-type", ""), 500), {}, frame.payload, ())
    if kind == "error":
        raise ProviderFailed("stream_error", retryable=True)
    raise BadFrame("message type")
