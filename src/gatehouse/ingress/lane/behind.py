"""What the lane does not answer goes on to uvicorn's protocol behind it, over the same connection, one request at a
time. It is given heads that were judged and bodies that are framed anew, so that both see the same requests."""

import asyncio
from typing import Any, NamedTuple, Protocol, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from gatehouse.ingress.lane.head import Head
from gatehouse.ingress.protocol import WatchfulProtocol


class Serving(NamedTuple):
    """What uvicorn tells each connection of the server."""

    config: Config
    state: ServerState
    app_state: dict[str, Any]
    loop: asyncio.AbstractEventLoop


class Front(Protocol):
    """The connection, as far as what is behind it knows it."""

    def answered(self) -> None:
        """What was handed on has its answer."""

    def hold(self) -> None: ...

    def go_on(self) -> None: ...


class _Lent:
    """The transport, of which another reads."""

    __slots__ = ("_transport", "pause_reading", "resume_reading")

    def __init__(self, transport: asyncio.Transport, front: Front) -> None:
        self._transport = transport
        self.pause_reading = front.hold
        self.resume_reading = front.go_on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Behind(WatchfulProtocol):
    """Keeps no time and is in no list: the connection in front does that for both."""

    def __init__(self, front: Front, transport: asyncio.Transport, serving: Serving) -> None:
        super().__init__(*serving)
        self._front = front
        self._chunked = False
        self.connection_made(cast("asyncio.Transport", _Lent(transport, front)))
        self.connections.discard(self)
        if self._look_due is not None:
            self._look_due.cancel()

    @property
    def begun(self) -> bool:
        """Whether the client has been told anything of the answer."""
        return self.cycle is not None and self.cycle.response_started

    def begin(self, head: Head) -> None:
        self._chunked = head.length is None
        self.data_received(head.without_offers())

    def take(self, data: bytes) -> None:
        self.data_received(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def over(self) -> None:
        if self._chunked:
            self.data_received(b"0\r\n\r\n")

    def on_response_complete(self) -> None:
        self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()
        self._unset_keepalive_if_required()
        self._front.answered()
