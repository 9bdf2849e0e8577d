"""uvicorn's protocol with five additions.

1. It calls a function when the client of a request in progress disconnects. In plain ASGI, an application needs one
   task for each request, which awaits the message `http.disconnect`. Here a dictionary entry is enough. Under another
   ASGI server, the gateway uses such a task.
2. It sends all data that is written in one iteration of the event loop in one system call, for example a head and
   its body, or several events.
3. It closes connections whose client does not complete its request, or does not read its response.
4. If the client is still sending, it delays closing the connection, so that the client can read its response.
5. It passes the client's certificate to the application if the listener requests one.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

#: key of `scope["state"]` for the callback for a disconnect, which may be None
_CLIENT_LEFT_KEY: Final = "gatehouse.client_left"
#: key of `scope["state"]` for the client's certificate (DER), which may be None; only present if the listener requests
#: certificates
_CERTIFICATE_KEY: Final = "gatehouse.client_certificate"

#: Interval between two checks of a connection. A client has one to two intervals to send a request, or to read a part
#: of its response.
CHECK_INTERVAL_SECONDS: Final = 60.0
#: time for which input is read and discarded before a connection is closed
LINGER_SECONDS: Final = 2.0
MAX_HEAD_BYTES: Final = 64 * 1024

#: An offer to upgrade to HTTP/2. Java's client sends it with the first request of each connection. With the offer, the
#: parser would treat the body as data of the new protocol. The offer is removed, which declines it.
_UPGRADE: Final = re.compile(
    rb"\A([A-Z]+ [^\r\n]+(?:\r\n[^\r\n]+)*?)\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE
)

_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 36\r\nconnection: close\r\n\r\nThe request's head is over 64 KiB.\r\n"
)


#: uvicorn's method, which is called for all input; this is faster than `super()`
_feed: Final = HttpToolsProtocol.data_received


class ClosableProtocol(Protocol):
    """The methods of a connection's protocol that `close` and `linger` use."""

    @property
    def may_receive_more(self) -> bool:
        """Return whether the client may still be sending a request that the server will not read."""

    def connection_lost(self, exc: Exception | None) -> None: ...


class LingeringClose(asyncio.Protocol):
    """A half-closed connection. Its input is discarded until the client closes its side or `LINGER_SECONDS` have
    passed. If a socket with unread input were closed at once, the connection would be reset, and the client could lose
    a complete response."""

    def __init__(self, transport: asyncio.Transport, connections: set[Any]) -> None:
        self._transport = transport
        self._connections = connections
        connections.add(self)
        self._loop = asyncio.get_running_loop()
        transport.set_protocol(self)
        transport.resume_reading()
        # TLS has no half-close. The client must then recognize the end of the response without it.
        if transport.can_write_eof():
            # The client may have closed the connection, but the transport has not noticed yet.
            with contextlib.suppress(OSError):
                transport.write_eof()
        self._timer = self._loop.call_later(LINGER_SECONDS, self._close)

    def _close(self) -> None:
        self._transport.close()
        # `close` waits until the write buffer is empty. If the client does not read it, the connection is aborted.
        self._timer = self._loop.call_later(CHECK_INTERVAL_SECONDS, self._transport.abort)

    def shutdown(self) -> None:
        """Do nothing when the server stops, because the timer closes the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._connections.discard(self)


def linger(transport: asyncio.Transport, protocol: ClosableProtocol, connections: set[Any]) -> None:
    """Close a connection with a lingering close after all written data has been sent. `protocol.connection_lost` is
    called at once."""
    if not transport.is_closing():
        LingeringClose(transport, connections)
        protocol.connection_lost(None)


def close(transport: asyncio.Transport, protocol: ClosableProtocol, connections: set[Any]) -> None:
    """Close a connection after all written data has been sent. If the client may still be sending, use a lingering
    close."""
    if protocol.may_receive_more:
        linger(transport, protocol, connections)
    else:
        transport.close()


class _CorkedTransport:
    """A transport that collects writes until the end of the event loop's iteration. It passes all other calls to the
    wrapped transport."""

    __slots__ = ("_closed", "_connections", "_flush_scheduled", "_loop", "_pieces", "_size", "_transport")

    #: size above which collected data is written at once, so that it counts for the transport's high-water mark
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
            close(self._transport, cast("ClosableProtocol", self._transport.get_protocol()), self._connections)

    def is_closing(self) -> bool:
        return self._closed or self._transport.is_closing()

    def lost(self) -> None:
        """Discard data that is not written yet."""
        self._closed = True
        self._pieces.clear()

    def _scheduled_flush(self) -> None:
        self._flush_scheduled = False
        self.flush()

    def flush(self) -> None:
        if self._pieces:
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces, self._size = [], 0
            # The client may have disconnected in the meantime.
            if not self.is_closing():
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _CloseDelimitedCycle(RequestResponseCycle):
    """A response to an HTTP/1.0 request. HTTP/1.0 has no chunked coding, so a body without a length ends when the
    connection is closed."""

    _close_delimited = False

    async def send(self, message: Any) -> None:
        if not self.response_started:
            self._close_delimited = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if self._close_delimited:
                self.chunked_encoding = False
        elif self._close_delimited:
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class GatewayHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the additions that are described at the top of this module."""

    #: the request that is being answered; pipelined requests wait until it has been answered
    _answering: RequestResponseCycle | None = None
    _check_timer: asyncio.TimerHandle | None = None
    #: the result of `_awaited_from_client` at the last check; the same object again means that there was no progress
    _awaited: object = None
    #: bytes of an incomplete head
    _head_bytes = 0
    #: replaced at each pause of writing, so that two pauses are distinguished by identity
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
        # The scope has a method when the head is complete. The size of the head is checked here, because the parser
        # does not limit it.
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
        # uvicorn does not set this if the response was complete before the request.
        self.cycle.more_body = False
        # The request is complete. Reading must continue, because a disconnect is only detected by reading.
        if not self.pipeline:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        # Flush at once only if this is the only request of the worker. With several requests, each early flush costs a
        # system call and wakes a client while the worker still computes other responses. That would cost as much as
        # collecting the writes saves.
        if len(self.tasks) <= 1:
            self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._write_pause = object()
        super().pause_writing()

    def _check_progress(self) -> None:
        """Close the connection if the client has made no progress since the last check. The client must send the
        request that it has begun, and must read its response. These checks cost one timer for each connection, and
        nothing for each request."""
        awaited = self._awaited_from_client()
        if awaited is not None and awaited is self._awaited:
            self.transport.abort()
            return
        self._awaited = awaited
        self._check_timer = self.loop.call_later(CHECK_INTERVAL_SECONDS, self._check_progress)

    def _awaited_from_client(self) -> object:
        """Return an object that represents what the client must do next, or None if nothing. The object changes when
        the client makes progress."""
        if self.transport.is_closing():
            return self.transport
        if self.flow.write_paused:
            return self._write_pause
        cycle = self._answering
        # While the request is being answered, the code that reads its body limits the time for the body.
        if cycle is not None and not cycle.response_complete:
            return None
        # While reading is paused, the client cannot send the missing part of the body.
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
    def may_receive_more(self) -> bool:
        scope, cycle = self.scope, self.cycle
        if cycle is None or cycle.scope is not scope:
            # The head of a request is incomplete or malformed.
            return scope is not None
        return cycle.more_body or bool(self.pipeline)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport.lost()  # type: ignore[attr-defined]
        super().connection_lost(exc)
        if self._check_timer is not None:
            self._check_timer.cancel()
        cycle = self._answering
        if cycle is not None and not cycle.response_complete:
            # uvicorn notifies only the newest pipelined request, which may still wait in the queue. Notify also the
            # request that is being answered.
            cycle.disconnected = True
            cycle.message_event.set()
            callback = cycle.scope["state"].get(_CLIENT_LEFT_KEY)
            if callback is not None:
                callback()


def set_disconnect_callback(scope: Scope, callback: Callable[[], object] | None) -> bool:
    """Register a callback for a disconnect of the client, or remove it if `callback` is None. Return False if the
    server does not support this."""
    state = scope.get("state")
    if state is None or _CLIENT_LEFT_KEY not in state:
        return False
    state[_CLIENT_LEFT_KEY] = callback
    return True


def has_certificate(scope: Scope, certificate: bytes) -> bool:
    """Return whether the client presented this certificate (DER). Return True if the listener requests no
    certificates."""
    state = scope.get("state") or {}
    return _CERTIFICATE_KEY not in state or state[_CERTIFICATE_KEY] == certificate
