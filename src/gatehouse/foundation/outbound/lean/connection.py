"""One connection to a provider: parses one response at a time and enforces deadlines."""

import asyncio
import math
import select
from typing import Final, Protocol, cast

import httptools

from gatehouse.foundation.outbound import BrokenOff, ConnectFailed, OutboundFailed, OutboundTimeout
from gatehouse.foundation.outbound.lean.answer import MAX_HEAD_BYTES, final_head, framing
from gatehouse.foundation.outbound.lean.inflate import Inflater, make_inflater
from gatehouse.foundation.outbound.lean.route import Origin

#: reading from the socket pauses when this many bytes of a reply are buffered
HIGH_WATER_BYTES: Final = 64 * 1024
#: A connection of this age serves no further call, because its name may have other addresses by then.
MAX_AGE_SECONDS: Final = 300.0

#: a body up to this size is joined with its head and sent in one write
_MAX_JOINED_BYTES: Final = 16 * 1024


class ConnectionOwner(Protocol):
    """Receives the changes of a connection's state. The pool implements it."""

    def on_idle(self, connection: "LeanConnection") -> None:
        """Called when a response has been read to its end and the connection may serve another call."""

    def on_closed(self, connection: "LeanConnection") -> None:
        """Called once, when the connection serves no further call."""


class OutboundCall(Protocol):
    """Receives the response. The connection appends data of the body to `parts`. `buffered_bytes` is the size of these
    parts as received, with the framing."""

    parts: list[bytes]
    buffered_bytes: int
    #: whether the connection had served another call before
    reused: bool

    @property
    def bodiless(self) -> bool:
        """Returns whether the response has no body, even if its head announces one."""

    @property
    def idempotent(self) -> bool:
        """Returns whether the request may be repeated without further effect."""

    @property
    def waiting(self) -> bool: ...

    @property
    def total_deadline(self) -> float | None:
        """Returns the deadline of the whole call in the loop's time."""

    def begin(self, status: int, head: bytes, inflater: Inflater | None) -> None: ...

    def wake(self) -> None: ...

    def restart_first_byte_timeout(self) -> None: ...

    def end(self) -> None:
        """Called when the body is complete. The connection no longer belongs to the call."""

    def fail(self, failure: OutboundFailed) -> None:
        """Called when the connection is closed before the end of the body."""


class LeanConnection(asyncio.Protocol):
    """A connection to an origin. `begin` sends a request, and the call that is passed to it receives the response or
    the failure."""

    __slots__ = (
        "_arrived",
        "_body_pieces",
        "_bytes_without_body",
        "_complete",
        "_deadline",
        "_head",
        "_head_complete",
        "_informational",
        "_keeps_alive",
        "_loop",
        "_malformed",
        "_opened_at",
        "_owner",
        "_parser",
        "_paused",
        "_poll",
        "_reply",
        "_status",
        "_timer",
        "_timer_deadline",
        "_transport",
        "_until_close",
        "_used",
        "ended",
        "keepalive_seconds",
        "on_body",
        "origin",
    )

    def __init__(self, owner: ConnectionOwner, origin: Origin) -> None:
        self._owner = owner
        self.origin = origin
        self._loop = asyncio.get_running_loop()
        self._opened_at = self._loop.time()
        self._arrived: list[bytes] = []
        #: the parser's most frequent callback; it is the method of the list itself, because this is fastest
        self.on_body = self._arrived.append
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._reply: OutboundCall | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline = 0.0
        self._deadline: float | None = None
        self._used = False
        self._paused = False
        self.ended = False
        #: how long the server keeps the idle connection open; infinite if the response does not state it
        self.keepalive_seconds = math.inf
        self._reset()

    def _reset(self) -> None:
        self._head = b""
        self._head_complete = self._complete = self._keeps_alive = self._malformed = self._until_close = False
        self._informational = self._status = self._bytes_without_body = self._body_pieces = 0

    # Called by the pool and the reply.

    def alive(self) -> bool:
        """Returns whether the idle connection is usable: the server has neither closed it nor sent data. Polls the
        socket, because the event loop may not have polled it yet."""
        assert self._transport is not None
        return not self._transport.is_closing() and not self._poll.poll(0)

    def begin(self, reply: OutboundCall, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        self._reply = reply
        reply.reused, self._used = self._used, True
        if len(body) <= _MAX_JOINED_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))

    def set_deadline(self, deadline: float | None) -> None:
        """Sets the deadline of the current wait, in the loop's time. None means no deadline."""
        self._deadline = deadline
        if deadline is not None and (self._timer is None or deadline < self._timer_deadline):
            self._start_timer(deadline)

    def keep_idle(self, seconds: float) -> None:
        """Closes the connection after `seconds` without a call. Closes it earlier if the server closes it before then,
        or when it reaches `MAX_AGE_SECONDS`."""
        self.set_deadline(
            min(self._loop.time() + min(seconds, self.keepalive_seconds), self._opened_at + MAX_AGE_SECONDS)
        )

    def resume(self) -> None:
        """Resumes reading from the socket after the reply's buffer has been emptied."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """Closes the connection immediately. Notifies the owner, but not the reply."""
        if self.ended:
            return
        self.ended = True
        self._reply = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Break the reference cycle with the parser, so that no garbage collection is needed.
        self._parser = None
        if self._transport is not None:
            self._transport.abort()
        self._owner.on_closed(self)

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._poll = select.poll()
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN | select.POLLHUP)

    def data_received(self, data: bytes) -> None:
        reply, parser = self._reply, self._parser
        if reply is None or parser is None:
            # Data without a request would be read as the response of the next call.
            self.abort()
            return
        head_complete, arrived = self._head_complete, self._arrived
        if not head_complete:
            self._head += data
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._malformed = True
        if not head_complete and not self._read_head(reply):
            return
        without_body = not arrived
        if arrived:
            if self._complete:
                # Drop the data after the end of the response, which belongs to another message.
                del arrived[self._body_pieces :]
            reply.parts += arrived
            arrived.clear()
        if self._complete:
            self._finish(reply)
        elif self._malformed:
            self._fail(reply, BrokenOff())
        else:
            self._progress(reply, len(data), without_body=without_body)

    def eof_received(self) -> None:
        reply = self._reply
        if reply is not None and self._until_close:
            self._finish(reply)
        else:
            self.break_off()

    def connection_lost(self, exc: Exception | None) -> None:
        self.break_off()

    def resume_writing(self) -> None:
        """Restarts the first-byte timeout after a long body has been sent."""
        if self._reply is not None and not self._head_complete:
            self._reply.restart_first_byte_timeout()

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self._complete:
            self._malformed = True

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        if self._complete:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._informational += 1
        else:
            self._status = status
            self._head_complete = True

    def on_message_complete(self) -> None:
        if self._head_complete and not self._complete:
            assert self._parser is not None
            self._complete = True
            self._body_pieces = len(self._arrived)
            # The parser resets this value after this callback.
            self._keeps_alive = self._parser.should_keep_alive()

    # The response.

    def _read_head(self, reply: OutboundCall) -> bool:
        """Returns whether the head is complete. Fails the call if the head is invalid."""
        if not self._head_complete:
            if self._malformed or len(self._head) > MAX_HEAD_BYTES:
                self._fail(reply, BrokenOff())
            return False
        try:
            if self._status < 200:
                raise BrokenOff
            head = final_head(self._head, self._informational)
            until_close, encoding, self.keepalive_seconds = framing(head)
            inflater = make_inflater(encoding)
        except OutboundFailed as failure:
            self._fail(reply, failure)
            return False
        if reply.bodiless:
            # The parser does not know the request's method, so it waits for a body.
            self._body_pieces = 0
            self._complete = self._malformed = True
        elif not self._complete:
            self._until_close = until_close
        reply.begin(self._status, head, inflater)
        return True

    def _progress(self, reply: OutboundCall, size: int, *, without_body: bool) -> None:
        self._bytes_without_body = self._bytes_without_body + size if without_body else 0
        if self._bytes_without_body > MAX_HEAD_BYTES:
            # The server sends a trailer without end.
            self._fail(reply, BrokenOff())
            return
        reply.buffered_bytes += size
        if reply.buffered_bytes > HIGH_WATER_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        reply.wake()

    def _finish(self, reply: OutboundCall) -> None:
        transport = self._transport
        assert transport is not None
        self._reply = None
        reusable = (
            self._keeps_alive
            and not self._malformed
            # The response may arrive before the whole request has been sent.
            and not transport.get_write_buffer_size()
            and self._loop.time() - self._opened_at < MAX_AGE_SECONDS
        )
        reply.end()
        if reusable:
            self.resume()
            self._reset()
            self._owner.on_idle(self)
        else:
            self.abort()

    def break_off(self) -> None:
        """Ends the connection after a disconnect, or when the pool is closed."""
        reply = self._reply
        if reply is None:
            self.abort()
        elif reply.reused and reply.idempotent and not self._head:
            # The server closed the idle connection before the request arrived.
            self._fail(reply, ConnectFailed())
        else:
            self._fail(reply, BrokenOff())

    def _fail(self, reply: OutboundCall, failure: OutboundFailed) -> None:
        self.abort()
        reply.fail(failure)

    # Deadlines.

    def _start_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_deadline = when
        self._timer = self._loop.call_at(when, self._check_deadline)

    def _check_deadline(self) -> None:
        """Checks the current deadline. The timer is not changed when the deadline moves to a later time. So the timer
        is started again if the deadline has not passed yet."""
        self._timer = None
        reply, deadline = self._reply, self._deadline
        if reply is not None and not reply.waiting:
            deadline = reply.total_deadline
        if deadline is None:
            return
        if self._loop.time() < deadline:
            self._start_timer(deadline)
        elif reply is not None:
            self._fail(reply, OutboundTimeout())
        else:
            self.abort()
