"""Passes requests that the HTTP/1.1 server (`ingress.http1`) does not answer itself to uvicorn's protocol.

The requests stay on the same connection and are passed on one at a time. uvicorn receives validated heads and
re-encoded bodies, so that both protocols recognize the same requests.
"""

import asyncio
from typing import Any, NamedTuple, Protocol, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from gatehouse.ingress.http1.head import ParsedHead
from gatehouse.ingress.protocol import GatewayHttpProtocol


class ServerContext(NamedTuple):
    """The arguments that uvicorn passes to each connection."""

    config: Config
    state: ServerState
    app_state: dict[str, Any]
    loop: asyncio.AbstractEventLoop


class ForwardingConnection(Protocol):
    """The methods of the client's connection that the fallback uses."""

    def fallback_answered(self) -> None:
        """Called when the response to a forwarded request has been written."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class _BorrowedTransport:
    """The transport for uvicorn's protocol. It controls reading through the client's connection."""

    __slots__ = ("_transport", "pause_reading", "resume_reading")

    def __init__(self, transport: asyncio.Transport, connection: ForwardingConnection) -> None:
        self._transport = transport
        self.pause_reading = connection.pause_reading
        self.resume_reading = connection.resume_reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class UvicornFallback(GatewayHttpProtocol):
    """uvicorn's protocol without its timer. It is not in the server's set of connections, because the client's
    connection is already in the set."""

    def __init__(self, connection: ForwardingConnection, transport: asyncio.Transport, context: ServerContext) -> None:
        super().__init__(*context)
        self._connection = connection
        self._chunked = False
        self.connection_made(cast("asyncio.Transport", _BorrowedTransport(transport, connection)))
        self.connections.discard(self)
        if self._check_timer is not None:
            self._check_timer.cancel()

    @property
    def begun(self) -> bool:
        """Return whether the response has started."""
        return self.cycle is not None and self.cycle.response_started

    def begin(self, head: ParsedHead) -> None:
        """Pass the head of a request to uvicorn's parser."""
        self._chunked = head.length is None
        self.data_received(head.without_upgrade())

    def feed_body(self, data: bytes) -> None:
        self.data_received(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end_body(self) -> None:
        if self._chunked:
            self.data_received(b"0\r\n\r\n")

    def on_response_complete(self) -> None:
        self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()
        self._unset_keepalive_if_required()
        self._connection.fallback_answered()
