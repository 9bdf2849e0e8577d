"""uvicorn's protocol with five additions.

1. It notifies a request in progress that its client has disconnected. By the ASGI standard an application waits for a
   message, which takes one task for each request; here it takes a dictionary entry. Under another server the gateway
   waits for the message.
2. It sends everything written in one iteration of the event loop in one system call: head and body, or several events.
3. It closes connections whose client does not complete its request, or does not read its response.
4. It lingers before it closes a connection whose client still sends, so that the client can read its response.
5. It gives the application the client's certificate where the listener requests one.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

#: key in `scope["state"]`: the callback for a disconnect, or None
_CLIENT_LEFT_KEY: Final = "gatehouse.client_left"
#: key in `scope["state"]` where the listener requests certificates: the client's certificate (DER), or None
_CERTIFICATE_KEY: Final = "gatehouse.client_certificate"

#: Interval between two checks of a connection. A client has one to two intervals to send a request or to read some of
#: its response.
CHECK_INTERVAL_SECONDS: Final = 60.0
#: how long the input of an answered client is read and discarded
LINGER_SECONDS: Final = 2.0
MAX_HEAD_BYTES: Final = 64 * 1024

#: An offer to upgrade to HTTP/2, as Java's client sends with every first request. The parser would treat the body as
#: data of the new protocol, so the offer is removed, which declines it.
_UPGRADE: Final = re.compile(
    rb"\A([A-Z]+ [^\r\n]+(?:\r\n[^\r\n]+)*?)\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE
)

_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 36\r\nconnection: close\r\n\r\nThe request's head is over 64 KiB.\r\n"
)


#: called for all input; cheaper than `super()`
_feed: Final = HttpToolsProtocol.data_received


class ClosingProtocol(Protocol):
    """A connection's protocol, as `close` and `linger` need it."""

    @property
    def unread(self) -> bool:
        """Return whether the client may still send data that will not be read."""

    def connection_lost(self, exc: Exception | None) -> None: ...


class LingeringClose(asyncio.Protocol):
    """A half-closed connection whose input is discarded until the client closes its side or `LINGER_SECONDS` are over.
    Closing a socket with unread input resets the connection, and the client may lose a complete response."""

    def __init__(self, transport: asyncio.Transport, connections: set[Any]) -> None:
        self._transport = transport
        self._connections = connections
        connections.add(self)
        self._loop = asyncio.get_running_loop()
        transport.set_protocol(self)
        transport.resume_reading()
        # TLS has no half-close: there the response must be self-delimiting.
        if transport.can_write_eof():
            # The client may have closed the connection without the transport knowing it yet.
            with contextlib.suppress(OSError):
                transport.write_eof()
        self._timer = self._loop.call_later(LINGER_SECONDS, self._close)

    def _close(self) -> None:
        self._transport.close()
        # The client may not read the response: close() waits for the write buffer, so abort later.
        self._timer = self._loop.call_later(CHECK_INTERVAL_SECONDS, self._transport.abort)

    def shutdown(self) -> None:
        """Does nothing when the server stops: the connection closes by its own timer."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._connections.discard(self)


def linger(transport: asyncio.Transport, protocol: ClosingProtocol, connections: set[Any]) -> None:
    """Closes a connection after all written data, with a lingering close. Calls `protocol.connection_lost` at once."""
    if not transport.is_closing():
        LingeringClose(transport, connections)
        protocol.connection_lost(None)


def close(transport: asyncio.Transport, protocol: ClosingProtocol, connections: set[Any]) -> None:
    """Closes a connection after all written data. Lingers where the client may still send."""
    if protocol.unread:
        linger(transport, protocol, connections)
    else:
        transport.close()


class _CorkedTransport:
    """A transport that collects writes until the end of the loop's iteration. Everything else is passed through."""

    __slots__ = ("_closed", "_connections", "_flush_scheduled", "_loop", "_pieces", "_size", "_transport")

    #: above this size the data is written at once, so that the transport's high-water mark counts it
    MAX_COLLECTED_BYTES: Final = 64 * 1024

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, connections: set[Any]) -> None:
        self._transport = transport
        self._loop = loop
        self._connections = connections
        self._closed = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._flush_scheduled = False

    def write(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self.MAX_COLLECTED_BYTES:
            self.flush()
        elif not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._scheduled_flush)

    def close(self) -> None:
        if self._closed:
            return
        self.flush()
        self._closed = True
        # A closing TLS transport may have no protocol.
        if not self._transport.is_closing():
            close(self._transport, cast("ClosingProtocol", self._transport.get_protocol()), self._connections)

    def is_closing(self) -> bool:
        return self._closed or self._transport.is_closing()

    def lost(self) -> None:
        """Discards what is not written yet."""
        self._closed = True
        self._pieces.clear()

    def _scheduled_flush(self) -> None:
        self._flush_scheduled = False
        self.flush()

    def flush(self) -> None:
        if self._pieces:
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces, self._size = [], 0
            # The client may have disconnected since.
            if not self.is_closing():
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _CloseDelimitedCycle(RequestResponseCycle):
    """A response to an HTTP/1.0 request. HTTP/1.0 has no chunked coding: a body without a length ends with the
    connection."""

    _close_delimited = False

    async def send(self, message: Any) -> None:
        if not self.response_started:
            self._close_delimited = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if self._close_delimited:
                self.chunked_encoding = False
        elif self._close_delimited:
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class WatchfulProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the additions described at the top of this module."""

    #: the request being answered; pipelined requests wait for it
    _answering: RequestResponseCycle | None = None
    _check_timer: asyncio.TimerHandle | None = None
    #: what the client owed at the last check; compared by identity
    _owed: object = None
    #: bytes of an incomplete head
    _head_bytes = 0
    #: a new object for each pause of writing
    _write_pause: object = None
    #: whether the listener requests certificates, and the client's certificate (DER)
    _requests_certificate = False
    _certificate: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _CorkedTransport(transport, self.loop, self.connections)))
        self._check_timer = self.loop.call_later(CHECK_INTERVAL_SECONDS, self._check_progress)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.context.verify_mode is not ssl.CERT_NONE:
            self._requests_certificate, self._certificate = True, tls.getpeercert(binary_form=True)

    def data_received(self, data: bytes) -> None:
        if b"h2c" in data and (self.cycle is None or not self.cycle.more_body):
            data = _UPGRADE.sub(rb"\1", data, count=1)
        _feed(self, data)
        # The scope has a method once the head is complete. The parser does not limit the size of a head.
        scope = self.scope
        if scope is None or "method" not in scope:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()
        elif self._head_bytes:
            self._head_bytes = 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # uvicorn does not do this where the response was complete before the request.
        self.cycle.more_body = False
        # The request is complete. Reading must continue, because only reading detects a disconnect.
        if not self.pipeline:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        # Flush at once only for a single request. With several requests, an early flush wakes a client while other
        # responses are still being made, which costs what collecting writes saves.
        if len(self.tasks) <= 1:
            self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._write_pause = object()
        super().pause_writing()

    def _check_progress(self) -> None:
        """Closes the connection if the client owes the same thing as at the last check: the rest of a request, or
        reading of its response. Costs one timer for each connection and nothing for each request."""
        owed = self._what_client_owes()
        if owed is not None and owed is self._owed:
            self.transport.abort()
            return
        self._owed = owed
        self._check_timer = self.loop.call_later(CHECK_INTERVAL_SECONDS, self._check_progress)

    def _what_client_owes(self) -> object:
        if self.transport.is_closing():
            return self.transport
        if self.flow.write_paused:
            return self._write_pause
        cycle = self._answering
        # Until the response is complete, the reader of the request's body limits the time.
        if cycle is not None and not cycle.response_complete:
            return None
        # While reading is paused, a missing body is not the client's fault.
        if cycle is not None and cycle is self.cycle and cycle.more_body and not self.flow.read_paused:
            return cycle
        if self.scope is None:
            return self
        return None if "method" in self.scope else self.scope

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.scope["state"][_CLIENT_LEFT_KEY] = None
        if self._requests_certificate:
            cycle.scope["state"][_CERTIFICATE_KEY] = self._certificate
        if cycle.scope["http_version"] == "1.0":
            cycle.__class__ = _CloseDelimitedCycle
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def unread(self) -> bool:
        scope, cycle = self.scope, self.cycle
        if cycle is None or cycle.scope is not scope:
            # The head is incomplete or malformed.
            return scope is not None
        return cycle.more_body or bool(self.pipeline)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport.lost()  # type: ignore[attr-defined]
        super().connection_lost(exc)
        if self._check_timer is not None:
            self._check_timer.cancel()
        cycle = self._answering
        if cycle is not None and not cycle.response_complete:
            # uvicorn notifies only the last request received, which may still wait for this one.
            cycle.disconnected = True
            cycle.message_event.set()
            callback = cycle.scope["state"].get(_CLIENT_LEFT_KEY)
            if callback is not None:
                callback()


def on_client_left(scope: Scope, callback: Callable[[], object] | None) -> bool:
    """Registers the callback for a disconnect of the client; None removes it. Returns False if the server does not
    support this."""
    state = scope.get("state")
    if state is None or _CLIENT_LEFT_KEY not in state:
        return False
    state[_CLIENT_LEFT_KEY] = callback
    return True


def has_certificate(scope: Scope, certificate: bytes) -> bool:
    """Return whether the client presented this certificate (DER). True if the listener requests no certificate."""
    state = scope.get("state") or {}
    return _CERTIFICATE_KEY not in state or state[_CERTIFICATE_KEY] == certificate
