"""One connection to a provider: it carries one answer at a time, takes it apart, and watches the clock."""

import asyncio
import math
import select
from typing import Final, Protocol, cast

import httptools

from gatehouse.foundation.outbound import BrokenOff, ConnectFailed, OutboundFailed, OutboundTimeout
from gatehouse.foundation.outbound.lean.answer import MAX_HEAD, final_head, framing
from gatehouse.foundation.outbound.lean.inflate import Inflater, inflater
from gatehouse.foundation.outbound.lean.route import Origin

#: A reply that holds more bytes than this has its connection stop reading.
HIGH_WATER: Final = 64 * 1024
#: Seconds after which a connection serves no further call: a name may lead elsewhere by then.
MAX_AGE: Final = 300.0

#: A longer body is not copied behind its head.
_JOINED: Final = 16 * 1024


class Keeper(Protocol):
    """Who hears of a connection's life."""

    def rests(self, connection: "Connection") -> None:
        """An answer was read to its end, and the connection may serve another call."""

    def ended(self, connection: "Connection") -> None:
        """It will serve none any more. Told once."""


class Call(Protocol):
    """Who hears of the answer. `parts` are filled; `held` counts what came since they were taken last."""

    parts: list[bytes]
    held: int
    #: whether its connection has served another call before
    reused: bool

    @property
    def bodiless(self) -> bool:
        """Whatever the answer declares, nothing follows its head."""

    @property
    def repeatable(self) -> bool:
        """Whether the same request twice does what it does once."""

    @property
    def waiting(self) -> bool: ...

    @property
    def total(self) -> float | None:
        """When all of it has to be over, by the loop's time."""

    def begin(self, status: int, head: bytes, inflater: Inflater | None) -> None: ...

    def wake(self) -> None: ...

    def wait_anew(self) -> None:
        """The time until the first byte begins now."""

    def end(self) -> None:
        """The body is complete, and the connection the call's no more."""

    def fail(self, failure: OutboundFailed) -> None:
        """No more will come, and the connection is closed."""


class Connection(asyncio.Protocol):
    """`begin` sends a request; the reply that it was given is told of the answer, or why there is none."""

    __slots__ = (
        "_armed",
        "_arrived",
        "_barren",
        "_born",
        "_complete",
        "_deadline",
        "_head",
        "_headed",
        "_informational",
        "_keeper",
        "_kept",
        "_loop",
        "_parser",
        "_paused",
        "_pieces",
        "_poll",
        "_reply",
        "_spoilt",
        "_status",
        "_timer",
        "_transport",
        "_until_close",
        "_used",
        "ended",
        "on_body",
        "origin",
        "rest_seconds",
    )

    def __init__(self, keeper: Keeper, origin: Origin) -> None:
        self._keeper = keeper
        self.origin = origin
        self._loop = asyncio.get_running_loop()
        self._born = self._loop.time()
        self._arrived: list[bytes] = []
        #: of the parser, called as often as all else together
        self.on_body = self._arrived.append
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._reply: Call | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._armed = 0.0
        self._deadline: float | None = None
        self._used = False
        self._paused = False
        self.ended = False
        #: how long the far end will keep it, as far as it told
        self.rest_seconds = math.inf
        self._reset()

    def _reset(self) -> None:
        self._head = b""
        self._headed = self._complete = self._kept = self._spoilt = self._until_close = False
        self._informational = self._status = self._barren = self._pieces = 0

    # For whoever calls.

    def alive(self) -> bool:
        """Whether the far end has neither closed it nor said anything since. Asks the system: the loop may not have
        looked yet."""
        assert self._transport is not None
        return not self._transport.is_closing() and not self._poll.poll(0)

    def begin(self, reply: Call, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        self._reply = reply
        reply.reused, self._used = self._used, True
        if len(body) <= _JOINED:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))

    def expect(self, deadline: float | None) -> None:
        """By then something has to have happened, by the loop's time. None: nothing is waited for."""
        self._deadline = deadline
        if deadline is not None and (self._timer is None or deadline < self._armed):
            self._arm(deadline)

    def rest(self, seconds: float) -> None:
        """So long the next call may come, if the far end keeps it and it does not get too old."""
        self.expect(min(self._loop.time() + min(seconds, self.rest_seconds), self._born + MAX_AGE))

    def resume(self) -> None:
        """The reply has room again."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """At once; nobody is told but the keeper."""
        if self.ended:
            return
        self.ended = True
        self._reply = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # It knows this connection, and this connection it: nobody has to search for such a ring.
        self._parser = None
        if self._transport is not None:
            self._transport.abort()
        self._keeper.ended(self)

    # For the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._poll = select.poll()
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN | select.POLLHUP)

    def data_received(self, data: bytes) -> None:
        reply, parser = self._reply, self._parser
        if reply is None or parser is None:
            # Unasked for: it would be taken for the next call's answer.
            self.abort()
            return
        headed, arrived = self._headed, self._arrived
        if not headed:
            self._head += data
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._spoilt = True
        if not headed and not self._read_head(reply):
            return
        barren = not arrived
        if arrived:
            if self._complete:
                # The rest belongs to another message, which nobody wants.
                del arrived[self._pieces :]
            reply.parts += arrived
            arrived.clear()
        if self._complete:
            self._finish(reply)
        elif self._spoilt:
            self._fail(reply, BrokenOff())
        else:
            self._progress(reply, len(data), barren=barren)

    def eof_received(self) -> None:
        reply = self._reply
        if reply is not None and self._until_close:
            self._finish(reply)
        else:
            self.break_off()

    def connection_lost(self, exc: Exception | None) -> None:
        self.break_off()

    def resume_writing(self) -> None:
        """A long body was taken: only now can an answer be waited for."""
        if self._reply is not None and not self._headed:
            self._reply.wait_anew()

    # For the parser.

    def on_message_begin(self) -> None:
        if self._complete:
            self._spoilt = True

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        if self._complete:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._informational += 1
        else:
            self._status = status
            self._headed = True

    def on_message_complete(self) -> None:
        if self._headed and not self._complete:
            assert self._parser is not None
            self._complete = True
            self._pieces = len(self._arrived)
            # Behind this the parser has forgotten.
            self._kept = self._parser.should_keep_alive()

    # An answer's way.

    def _read_head(self, reply: Call) -> bool:
        """Whether it is all there. If it makes no sense the call is over."""
        if not self._headed:
            if self._spoilt or len(self._head) > MAX_HEAD:
                self._fail(reply, BrokenOff())
            return False
        try:
            if self._status < 200:
                raise BrokenOff
            head = final_head(self._head, self._informational)
            until_close, encoding, self.rest_seconds = framing(head)
            unpacking = inflater(encoding)
        except OutboundFailed as failure:
            self._fail(reply, failure)
            return False
        if reply.bodiless:
            # The parser does not know what was asked.
            self._pieces = 0
            self._complete = self._spoilt = True
        elif not self._complete:
            self._until_close = until_close
        reply.begin(self._status, head, unpacking)
        return True

    def _progress(self, reply: Call, size: int, *, barren: bool) -> None:
        self._barren = self._barren + size if barren else 0
        if self._barren > MAX_HEAD:
            # An endless trailer.
            self._fail(reply, BrokenOff())
            return
        reply.held += size
        if reply.held > HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        reply.wake()

    def _finish(self, reply: Call) -> None:
        transport = self._transport
        assert transport is not None
        self._reply = None
        reusable = (
            self._kept
            and not self._spoilt
            # An answer may come before its request was taken.
            and not transport.get_write_buffer_size()
            and self._loop.time() - self._born < MAX_AGE
        )
        reply.end()
        if reusable:
            self.resume()
            self._reset()
            self._keeper.rests(self)
        else:
            self.abort()

    def break_off(self) -> None:
        """The far end is gone, or this end goes."""
        reply = self._reply
        if reply is None:
            self.abort()
        elif reply.reused and reply.repeatable and not self._head:
            # It was closed as it was idle; the request had not got there.
            self._fail(reply, ConnectFailed())
        else:
            self._fail(reply, BrokenOff())

    def _fail(self, reply: Call, failure: OutboundFailed) -> None:
        self.abort()
        reply.fail(failure)

    # The clock.

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed = when
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        """Deadlines move with every answer, the timer does not: it looks again when it finds none passed."""
        self._timer = None
        reply, deadline = self._reply, self._deadline
        if reply is not None and not reply.waiting:
            deadline = reply.total
        if deadline is None:
            return
        if self._loop.time() < deadline:
            self._arm(deadline)
        elif reply is not None:
            self._fail(reply, OutboundTimeout())
        else:
            self.abort()
