"""uvicorn's protocol with five additions.

It tells a request in progress that its client has left. By the ASGI standard an application learns that by waiting for
a message, which takes a task a request; this costs a dictionary entry. Where another server runs the application, the
gateway waits for the message.

What is written within one turn of the loop leaves in one system call: head and body, or several events.

It bounds what a client may cost that sends no whole request, or reads nothing of its answer.

It parts from a client that has its answer and still sends, without taking the answer back.

And it tells the application which certificate the client has shown, where the listener asks for one.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

#: key in `scope["state"]`: a list for one callback
_LEFT: Final = "gatehouse.client_left"
#: key in `scope["state"]`, where the listener asks for certificates: the client's (DER), or None
_SHOWN: Final = "gatehouse.client_certificate"

#: Seconds between two looks at a connection: a client has one to two of them to send a request, or to read something.
PATIENCE: Final = 60.0
#: how long an answered client may go on sending what nobody reads
LINGER_SECONDS: Final = 2.0
MAX_HEAD_BYTES: Final = 64 * 1024

#: An offer of HTTP/2, as Java's client makes with every first request. The parser would take the body that follows for
#: the other protocol's; an offer that is not accepted is as good as none.
_UPGRADE: Final = re.compile(
    rb"\A([A-Z]+ [^\r\n]+(?:\r\n[^\r\n]+)*?)\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE
)

_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 36\r\nconnection: close\r\n\r\nThe request's head is over 64 KiB.\r\n"
)


#: Called for every piece that arrives: this way costs less than `super()`.
_feed: Final = HttpToolsProtocol.data_received


class Ending(Protocol):
    """A connection's protocol, as far as its end goes."""

    @property
    def unread(self) -> bool:
        """Whether the client may still be sending something that nobody will read."""

    def connection_lost(self, exc: Exception | None) -> None: ...


class Parting(asyncio.Protocol):
    """The rest of a connection: half of it is closed, and what the client still sends is forgotten, until it closes its
    half or a moment is over. A connection that is closed under bytes which nobody has read is reset, and the client may
    lose an answer that has come whole."""

    def __init__(self, transport: asyncio.Transport, connections: set[Any]) -> None:
        self._transport = transport
        self._connections = connections
        connections.add(self)
        self._loop = asyncio.get_running_loop()
        transport.set_protocol(self)
        transport.resume_reading()
        # TLS knows no half: what the client was told has to say where it ends.
        if transport.can_write_eof():
            # A client may have left by itself, of which the transport has yet to hear.
            with contextlib.suppress(OSError):
                transport.write_eof()
        self._due = self._loop.call_later(LINGER_SECONDS, self._close)

    def _close(self) -> None:
        self._transport.close()
        # It may not even read what it was sent.
        self._due = self._loop.call_later(PATIENCE, self._transport.abort)

    def shutdown(self) -> None:
        """The server stops; it has a moment."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._due.cancel()
        self._connections.discard(self)


def part(transport: asyncio.Transport, ending: Ending, connections: set[Any]) -> None:
    """Closes a connection behind what was written last. Its protocol hears now that it is lost."""
    if not transport.is_closing():
        Parting(transport, connections)
        ending.connection_lost(None)


def close(transport: asyncio.Transport, ending: Ending, connections: set[Any]) -> None:
    """Closes a connection behind what was written last, and parts from its client where it may still send."""
    if ending.unread:
        part(transport, ending, connections)
    else:
        transport.close()


class _Corked:
    """A transport that gathers writes until the turn is over. Everything else is the transport's own."""

    __slots__ = ("_connections", "_due", "_loop", "_over", "_pieces", "_size", "_transport")

    #: beyond this nothing is gathered: the transport's own high-water mark has to see it
    MOST: Final = 64 * 1024

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, connections: set[Any]) -> None:
        self._transport = transport
        self._loop = loop
        self._connections = connections
        self._over = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._due = False

    def write(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self.MOST:
            self.flush()
        elif not self._due:
            self._due = True
            self._loop.call_soon(self._turn_over)

    def close(self) -> None:
        if self._over:
            return
        self.flush()
        self._over = True
        # Over TLS what is closing may have no protocol any more.
        if not self._transport.is_closing():
            close(self._transport, cast("Ending", self._transport.get_protocol()), self._connections)

    def is_closing(self) -> bool:
        return self._over or self._transport.is_closing()

    def lost(self) -> None:
        """Nothing is written any more."""
        self._over = True
        self._pieces.clear()

    def _turn_over(self) -> None:
        self._due = False
        self.flush()

    def flush(self) -> None:
        if self._pieces:
            gathered = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces, self._size = [], 0
            # A client may have left since.
            if not self.is_closing():
                self._transport.write(gathered)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _EndedByClosing(RequestResponseCycle):
    """HTTP/1.0 knows no chunks: what has no length ends with the connection."""

    _endless = False

    async def send(self, message: Any) -> None:
        if not self.response_started:
            self._endless = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if self._endless:
                self.chunked_encoding = False
        elif self._endless:
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class WatchfulProtocol(HttpToolsProtocol):
    #: the request being answered; pipelined ones wait behind it
    _answering: RequestResponseCycle | None = None
    _look_due: asyncio.TimerHandle | None = None
    #: what the last look found the client to owe
    _owed: object = None
    #: bytes of a head that is not complete
    _head = 0
    #: one for each time that the client would not take more
    _pause: object = None
    #: whether the listener asks for certificates, and the one that the client has shown (DER)
    _asks = False
    _shown: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Corked(transport, self.loop, self.connections)))
        self._look_due = self.loop.call_later(PATIENCE, self._look)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.context.verify_mode is not ssl.CERT_NONE:
            self._asks, self._shown = True, tls.getpeercert(binary_form=True)

    def data_received(self, data: bytes) -> None:
        if b"h2c" in data and (self.cycle is None or not self.cycle.more_body):
            data = _UPGRADE.sub(rb"\1", data, count=1)
        _feed(self, data)
        # A head whose end has come has a method; the parser itself would take a head of any size.
        scope = self.scope
        if scope is None or "method" not in scope:
            self._head += len(data)
            if self._head > MAX_HEAD_BYTES:
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()
        elif self._head:
            self._head = 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # Also where its answer was there before it, which uvicorn passes over.
        self.cycle.more_body = False
        # Nothing more is received, and only who reads on sees that the client leaves.
        if not self.pipeline:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        # A single request waits for nobody. Where there are more, sending at once costs what the turn would save:
        # each answer wakes its client while others are still being made.
        if len(self.tasks) <= 1:
            self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._pause = object()
        super().pause_writing()

    def _look(self) -> None:
        """Closes the connection of a client that owed the same thing at the last look already: the rest of a request,
        or the reading of what it was sent. One timer a connection, and nothing a request."""
        owed = self._owes()
        if owed is not None and owed is self._owed:
            self.transport.abort()
            return
        self._owed = owed
        self._look_due = self.loop.call_later(PATIENCE, self._look)

    def _owes(self) -> object:
        if self.transport.is_closing():
            return self.transport
        if self.flow.write_paused:
            return self._pause
        cycle = self._answering
        # Until it is answered, whoever reads a request's body bounds the wait for it.
        if cycle is not None and not cycle.response_complete:
            return None
        # With reading paused, what is missing is not the client's fault.
        if cycle is not None and cycle is self.cycle and cycle.more_body and not self.flow.read_paused:
            return cycle
        if self.scope is None:
            return self
        return None if "method" in self.scope else self.scope

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.scope["state"][_LEFT] = None
        if self._asks:
            cycle.scope["state"][_SHOWN] = self._shown
        if cycle.scope["http_version"] == "1.0":
            cycle.__class__ = _EndedByClosing
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def unread(self) -> bool:
        scope, cycle = self.scope, self.cycle
        if cycle is None or cycle.scope is not scope:
            # A head that is not whole, or cannot be read.
            return scope is not None
        return cycle.more_body or bool(self.pipeline)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport.lost()  # type: ignore[attr-defined]
        super().connection_lost(exc)
        if self._look_due is not None:
            self._look_due.cancel()
        cycle = self._answering
        if cycle is not None and not cycle.response_complete:
            # Its own class tells only the request that came last, which may still wait behind this one.
            cycle.disconnected = True
            cycle.message_event.set()
            tell = cycle.scope["state"].get(_LEFT)
            if tell is not None:
                tell()


def on_client_left(scope: Scope, tell: Callable[[], object] | None) -> bool:
    """Has `tell` called once the client has left, or nobody any more with None. False: this server cannot tell."""
    state = scope.get("state")
    if state is None or _LEFT not in state:
        return False
    state[_LEFT] = tell
    return True


def shows(scope: Scope, certificate: bytes) -> bool:
    """Whether the connection was made with this certificate (DER). Also where the listener asks for none."""
    state = scope.get("state") or {}
    return _SHOWN not in state or state[_SHOWN] == certificate
