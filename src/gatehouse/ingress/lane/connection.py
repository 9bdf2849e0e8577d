"""One connection of a client: whose turn it is, and its clock.

A request begins when the one before it is over: its answer written and its body off the wire. What follows it waits as
bytes, of which no more are read than a few.
"""

import asyncio
from contextvars import Context
from typing import Any, Final, cast

import structlog
from uvicorn.protocols.utils import get_remote_addr

from gatehouse.ingress import protocol
from gatehouse.ingress.answers import LEFT
from gatehouse.ingress.gateway import Gateway, Kind, canonical, find
from gatehouse.ingress.lane.answer import BadHeader, refusal
from gatehouse.ingress.lane.behind import Behind, Serving
from gatehouse.ingress.lane.framing import Framing, Malformed
from gatehouse.ingress.lane.head import Head, Heads
from gatehouse.ingress.lane.turn import HIGH_WATER, Turn
from gatehouse.ingress.receive import received

log = structlog.get_logger(__name__)

_MALFORMED: Final = refusal(400, "Invalid HTTP request received.")
_HEAD_TOO_LARGE: Final = refusal(400, "The request's head is over 64 KiB.\r\n")
_FAULT: Final = refusal(500, "Internal Server Error")


class Connection(asyncio.Protocol):
    """What is the gateway's is answered here, by one task for all requests of a connection."""

    def __init__(self, gateway: Gateway, serving: Serving) -> None:
        self._gateway = gateway
        self._serving = serving
        self._state, self._loop = serving.state, serving.loop
        self._transport: asyncio.Transport
        self._peer: str | None = None
        self._heads = Heads()
        self._arrived = b""
        #: the body that is on its way, and whose it is
        self._framing: Framing | None = None
        self._taker: Turn | Behind | None = None
        #: the gateway's request that is not answered
        self._turn: Turn | None = None
        self._task: asyncio.Task[None] | None = None
        self._next: asyncio.Future[None] | None = None
        self._behind: Behind | None = None
        self._handed_on = False
        self._advancing = self._held = self._lost = False
        self.stopping = False
        #: there while the client reads too slowly
        self._room: asyncio.Future[None] | None = None
        self._look_due: asyncio.TimerHandle | None = None
        #: what the last look found the client to owe
        self._owed: object = None
        #: since when there is nothing to do, by the loop's time; None before the first request
        self._idle_since: float | None = None
        self._date: object = None
        self._defaults = b""

    # For the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._state.connections.add(cast("Any", self))
        peer = get_remote_addr(self._transport)
        self._peer = peer[0] if peer else None
        self._look_due = self._loop.call_later(protocol.PATIENCE, self._look)

    def data_received(self, data: bytes) -> None:
        self._arrived = self._arrived + data if self._arrived else data
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(cast("Any", self))
        if self._look_due is not None:
            self._look_due.cancel()
        self._lost = True
        self._arrived = b""
        self._framing = None
        # The parser knows these heads, and they the parser: nobody has to search for such a ring.
        self._heads.partial = None
        task, behind = self._task, self._behind
        self._task = self._behind = self._taker = None
        if task is not None:
            task.cancel(LEFT)
        if behind is not None:
            behind.connection_lost(exc)

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()
        if self._behind is not None:
            self._behind.pause_writing()

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)
        if self._behind is not None:
            self._behind.resume_writing()

    # For the server.

    def shutdown(self) -> None:
        self.stopping = True
        if self._handed_on and self._behind is not None:
            self._behind.shutdown()
        elif self._turn is None:
            protocol.close(self._transport, self, self._state.connections)

    @property
    def unread(self) -> bool:
        return self._framing is not None or bool(self._arrived) or self._heads.partial is not None

    # For requests.

    @property
    def defaults(self) -> bytes:
        lines = self._state.default_headers
        if lines is not self._date:
            self._date = lines
            self._defaults = b"".join(b"%b: %b\r\n" % line for line in lines)
        return self._defaults

    def write(self, *pieces: bytes) -> asyncio.Future[None] | None:
        transport = self._transport
        if self._lost or transport.is_closing():
            return None
        if len(pieces) == 1:
            transport.write(pieces[0])
        else:
            transport.writelines(pieces)
        return self._room

    def hold(self) -> None:
        if not self._held and not self._lost:
            self._held = True
            self._transport.pause_reading()

    def go_on(self) -> None:
        if self._held and not self._lost:
            self._held = False
            self._transport.resume_reading()

    def answered(self) -> None:
        """What was handed on has its answer."""
        self._handed_on = False
        self._after()

    # From bytes to requests.

    def _advance(self) -> None:
        """Goes on with what has arrived, as far as may be."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._arrived and not self._transport.is_closing():
                if self._framing is not None:
                    self._take_body(self._framing)
                elif self._turn is not None or self._handed_on:
                    if len(self._arrived) > HIGH_WATER:
                        self.hold()
                    return
                elif not self._begin():
                    return
        except Malformed:
            self._refuse(_MALFORMED)
        finally:
            self._advancing = False

    def _begin(self) -> bool:
        """Whether another request has begun."""
        head, self._arrived = self._heads.take(self._arrived)
        if len(self._arrived if head is None else head.raw) > protocol.MAX_HEAD_BYTES:
            self._refuse(_HEAD_TOO_LARGE)
            return False
        if head is None:
            return False
        # Which pages may call, and paths that have to be unquoted, are not this lane's affair.
        of_a_page = self._gateway.cross_origin and "origin" in head.wire
        plain = not of_a_page and "%" not in head.path and "#" not in head.path
        kind = find(head.method, head.path) if plain else None
        if kind is None:
            self._hand_on(head)
        else:
            self._answer(kind, head)
        return True

    def _answer(self, kind: Kind, head: Head) -> None:
        address = self._gateway.addresses.client(self._peer, head.wire.get("x-forwarded-for"))
        x = received(head.method, canonical(kind, head.path), head.headers, address, kind.dialect)
        self._turn = turn = Turn(self, self._loop, kind, x, head)
        length, arrived = head.length, self._arrived
        here: bytes | None = None
        if length is not None and length <= len(arrived):
            here, self._arrived = (arrived, b"") if length == len(arrived) else (arrived[:length], arrived[length:])
        else:
            turn.ended = False
            self._framing, self._taker = head.framing(), turn
        turn.body = self._gateway.body(x, turn.receive, here)
        if self._task is None:
            # In a context of its own: what was handed on before has left its marks in this one.
            self._task = self._loop.create_task(self._serve(), context=Context())
            self._state.tasks.add(self._task)
            self._task.add_done_callback(self._state.tasks.discard)
        elif self._next is not None and not self._next.done():
            self._next.set_result(None)

    def _hand_on(self, head: Head) -> None:
        behind = self._behind
        if behind is None:
            behind = Behind(self, self._transport, self._serving)
            self._behind = behind
            if self._room is not None:
                behind.pause_writing()
        self._handed_on = True
        self._framing = head.framing()
        self._taker = behind
        behind.begin(head)

    def _take_body(self, framing: Framing) -> None:
        taker = self._taker
        assert taker is not None
        body, self._arrived = framing.take(self._arrived)
        # Nobody reads what follows an answer. uvicorn has to see it, to know where it ends.
        if body and (taker is self._turn or taker is self._behind):
            taker.take(body)
        if framing.done:
            self._framing = self._taker = None
            if not self._lost:
                taker.over()
            if self._turn is None and not self._handed_on:
                self._rest()

    def _after(self) -> None:
        """A request has its answer."""
        self._rest()
        self.go_on()
        self._advance()

    def _rest(self) -> None:
        self._idle_since = self._loop.time()

    def _refuse(self, told: bytes) -> None:
        """Nothing that follows can be read. Who still reads a body hears that the client is gone."""
        answering = self._turn or (self._behind if self._handed_on else None)
        if answering is None or not answering.begun:
            self.write(told)
        protocol.part(self._transport, self, self._state.connections)

    # From requests to answers.

    async def _serve(self) -> None:
        """One request after the other."""
        turn = self._turn
        try:
            while True:
                while (turn := self._turn) is None:
                    self._next = waiter = self._loop.create_future()
                    await waiter
                assert turn.body is not None
                await self._gateway.serve(turn.kind, turn.x, turn.body, turn)
                self._state.total_requests += 1
                # They know each other: nobody has to search for such a ring.
                self._turn = turn.body = None
                if self.stopping or not turn.keeps:
                    self._close()
                    return
                self._after()
        except BadHeader:
            log.warning("ingress.bad_header", request_id=turn.x.request_id if turn else None)
            self._give_up(turn)
        except Exception:
            log.exception("ingress.fault", request_id=turn.x.request_id if turn else None)
            self._give_up(turn)
        except asyncio.CancelledError:
            self._give_up(turn)
            raise

    def _give_up(self, turn: Turn | None) -> None:
        if turn is not None and not turn.begun:
            self.write(_FAULT)
        self._close()

    def _close(self) -> None:
        # The task ends by itself, and is not to be told of the end that it makes.
        self._task = None
        if not self._lost:
            protocol.close(self._transport, self, self._state.connections)

    # The clock.

    def _look(self) -> None:
        """Closes the connection of a client that owed the same thing at the last look already: the rest of a request,
        or the reading of what it was sent; and one that rests for too long. One timer a connection, and nothing a
        request."""
        owed = self._owes()
        if owed is not None and owed is self._owed:
            self._transport.abort()
            return
        self._owed = owed
        delay = protocol.PATIENCE
        if owed is None and self._idle_since is not None and self._turn is None and not self._handed_on:
            left = self._idle_since + self._serving.config.timeout_keep_alive - self._loop.time()
            if left <= 0:
                self._transport.close()
                return
            delay = min(delay, left)
        self._look_due = self._loop.call_later(delay, self._look)

    def _owes(self) -> object:
        if self._transport.is_closing():
            return self._transport
        if self._room is not None:
            return self._room
        # Until it is answered, whoever reads a request's body bounds the wait for it.
        if self._turn is not None or self._handed_on:
            return None
        if self._framing is not None:
            return self._framing
        if self._heads.partial is not None:
            return self._heads.partial
        return self if self._idle_since is None else None
