"""Transport of Bedrock: authenticates requests, and converts binary events of replies to server-sent events."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, Protocol

import msgspec

from gatehouse.engine.conversation.sse import frame as event
from gatehouse.engine.providers.bedrock.event_stream import CONTENT_TYPE, BadFrame, Frame, Frames
from gatehouse.engine.providers.bedrock.signing import Scope, SigningIdentity, signed
from gatehouse.engine.providers.failure import ProviderFailed, of_status
from gatehouse.foundation.outbound import BrokenOff, Outbound, OutboundReply, OutboundRequest

_LINE_BREAKS_TO_SPACES: Final = bytes.maketrans(b"\r\n", b"  ")
#: HTTP statuses that are equivalent to exceptions in a stream.
_STATUS_BY_EXCEPTION: Final = {
    "validationException": 400,
    "accessDeniedException": 403,
    "modelTimeoutException": 408,
    "modelStreamErrorException": 424,
    "throttlingException": 429,
    "serviceUnavailableException": 503,
}


class Authorization(Protocol):
    async def headers(self, request: OutboundRequest) -> Mapping[str, str]:
        """Return the headers that authenticate a request. Raises `ProviderFailed`."""


class Signature:
    """Signs requests. Without an identity to sign with, `get_identity` raises `ProviderFailed`."""

    def __init__(self, scope: Scope, get_identity: Callable[[], Awaitable[SigningIdentity]]) -> None:
        self._scope = scope
        self._get_identity = get_identity

    async def headers(self, request: OutboundRequest) -> Mapping[str, str]:
        identity = await self._get_identity()
        return signed(request.method, request.url, request.body, identity=identity, scope=self._scope)


class BedrockApiKey:
    """Sends a Bedrock API key instead of a signature."""

    def __init__(self, key: str) -> None:
        self._headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}

    async def headers(self, request: OutboundRequest) -> Mapping[str, str]:
        return self._headers


class BedrockCarrier:
    """An `Outbound` that authenticates requests. `send` also raises `ProviderFailed`."""

    def __init__(self, outbound: Outbound, authorization: Authorization) -> None:
        self._outbound = outbound
        self._authorization = authorization

    async def send(self, request: OutboundRequest) -> OutboundReply:
        headers = await self._authorization.headers(request)
        reply = await self._outbound.send(msgspec.structs.replace(request, headers={**request.headers, **headers}))
        return EventReply(reply) if reply.headers.get("content-type", "").startswith(CONTENT_TYPE) else reply

    async def close(self) -> None:
        """Do nothing: the wrapped `Outbound` is shared."""


class EventReply:
    """A reply whose frames are converted to server-sent events: the frame's type becomes the event's name, its payload
    the data. An exception among the frames is raised as the equivalent failure of an answer."""

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
        """Yield the events. Also raises `ProviderFailed`."""
        frames = Frames()
        async for chunk in self._reply.chunks():
            events, fault = _events(frames, chunk)
            if events:
                yield events
            if fault is not None:
                raise fault
        if not frames.empty:
            raise BrokenOff

    async def close(self) -> None:
        await self._reply.close()


def _events(frames: Frames, chunk: bytes) -> tuple[bytes, ProviderFailed | None]:
    """Return the events in a chunk, and the fault after them, if any."""
    events: list[bytes] = []
    try:
        events.extend(_event(frame) for frame in frames.push(chunk))
    except BadFrame:
        return b"".join(events), ProviderFailed("bad_reply")
    except ProviderFailed as failed:
        return b"".join(events), failed
    return b"".join(events), None


def _event(frame: Frame) -> bytes:
    message_type = frame.headers.get(":message-type")
    if message_type == "event":
        # A line break would end the data; JSON contains them only between tokens.
        return event(frame.payload.translate(_LINE_BREAKS_TO_SPACES), frame.headers.get(":event-type"))
    if message_type == "exception":
        raise of_status(_STATUS_BY_EXCEPTION.get(frame.headers.get(":exception-type", ""), 500), {}, frame.payload, ())
    if message_type == "error":
        raise ProviderFailed("stream_error", retryable=True)
    raise BadFrame("message type")
