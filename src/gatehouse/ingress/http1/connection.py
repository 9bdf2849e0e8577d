"""One connection of a client: processes its requests in order, and enforces time limits.

A request begins when the response to the previous one has been written and the body of the previous one has been read.
The bytes of later requests wait in a bounded buffer.
"""

import asyncio
from contextvars import Context
from typing import Any, Final, cast

import structlog
from uvicorn.protocols.utils import get_remote_addr

from gatehouse.engine.streaming import AnswerBroken
from gatehouse.ingress import protocol
from gatehouse.ingress.answers import CLIENT_LEFT_MESSAGE
from gatehouse.ingress.gateway import Gateway, RequestKind, find_kind, target_of
from gatehouse.ingress.http1.answer import BadHeader, refusal
from gatehouse.ingress.http1.behind import ServerContext, UvicornFallback
from gatehouse.ingress.http1.framing import Framing, Malformed
from gatehouse.ingress.http1.head import HeadReader, ParsedHead
from gatehouse.ingress.http1.turn import HIGH_WATER_BYTES, RequestCycle
from gatehouse.ingress.receive import received_now

log = structlog.get_logger(__name__)

_MALFORMED: Final = refusal(400, "Invalid HTTP request received.")
_HEAD_TOO_LARGE: Final = refusal(400, "The request's head is over 64 KiB.\r\n")
_FAULT: Final = refusal(500, "Internal Server Error")


class ClientConnection(asyncio.Protocol):
    """A client's connection. One task answers its requests to the gateway. uvicorn's protocol answers its other
    requests."""

    def __init__(self, gateway: Gateway, context: ServerContext) -> None:
        self._gateway = gateway
        self._context = context
        self._state, self._loop = context.state, context.loop
        self._transport: asyncio.Transport
        self._peer: str | None = None
        self._heads = HeadReader()
        self._arrived = b""
        #: the framing and the consumer of the body that is arriving
        self._framing: Framing | None = None
        self._body_consumer: RequestCycle | UvicornFallback | None = None
        #: the request to the gateway that is being answered
        self._cycle: RequestCycle | None = None
        self._task: asyncio.Task[None] | None = None
        self._next_request: asyncio.Future[None] | None = None
        self._fallback: UvicornFallback | None = None
        #: whether the fallback is answering a request
        self._forwarded = False
        self._advancing = self._reading_paused = self._lost = False
        self.stopping = False
        #: a future that completes when the client has read enough; None unless the client reads too slowly
        self._drained: asyncio.Future[None] | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        #: the object that represented the expected action of the client at the last check; compared by identity
        self._awaited: object = None
        #: loop time since which the connection is idle; None before the first request
        self._idle_since: float | None = None
        #: the server's default headers that `_defaults` was computed from
        self._default_headers: object = None
        self._defaults = b""

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._state.connections.add(cast("Any", self))
        peer = get_remote_addr(self._transport)
        self._peer = peer[0] if peer else None
        self._check_timer = self._loop.call_later(protocol.CHECK_INTERVAL_SECONDS, self._check_progress)

    def data_received(self, data: bytes) -> None:
        self._arrived = self._arrived + data if self._arrived else data
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(cast("Any", self))
        if self._check_timer is not None:
            self._check_timer.cancel()
        self._lost = True
        self._arrived = b""
        self._framing = None
        # Break the reference cycle between the reader and its parser, so that no garbage collection is needed.
        self._heads.partial = None
        task, fallback = self._task, self._fallback
        self._task = self._fallback = self._body_consumer = None
        if task is not None:
            task.cancel(CLIENT_LEFT_MESSAGE)
        if fallback is not None:
            fallback.connection_lost(exc)

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()
        if self._fallback is not None:
            self._fallback.pause_writing()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        if self._fallback is not None:
            self._fallback.resume_writing()

    # Called by the server.

    def shutdown(self) -> None:
        self.stopping = True
        if self._forwarded and self._fallback is not None:
            self._fallback.shutdown()
        elif self._cycle is None:
            protocol.close(self._transport, self, self._state.connections)

    @property
    def may_receive_more(self) -> bool:
        return self._framing is not None or bool(self._arrived) or self._heads.partial is not None

    # Called by requests.

    @property
    def defaults(self) -> bytes:
        lines = self._state.default_headers
        if lines is not self._default_headers:
            self._default_headers = lines
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
        return self._drained

    def pause_reading(self) -> None:
        if not self._reading_paused and not self._lost:
            self._reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._reading_paused and not self._lost:
            self._reading_paused = False
            self._transport.resume_reading()

    def fallback_answered(self) -> None:
        """End a forwarded request."""
        self._forwarded = False
        self._finish_request()

    # From input to requests.

    def _advance(self) -> None:
        """Process the input buffer until it is empty or the current request must be answered first."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._arrived and not self._transport.is_closing():
                if self._framing is not None:
                    self._take_body(self._framing)
                elif self._cycle is not None or self._forwarded:
                    if len(self._arrived) > HIGH_WATER_BYTES:
                        self.pause_reading()
                    return
                elif not self._begin_request():
                    return
        except Malformed:
            self._refuse(_MALFORMED)
        finally:
            self._advancing = False

    def _begin_request(self) -> bool:
        """Begin the next request. Return False if its head is incomplete or refused."""
        head, self._arrived = self._heads.take(self._arrived)
        if len(self._arrived if head is None else head.raw) > protocol.MAX_HEAD_BYTES:
            self._refuse(_HEAD_TOO_LARGE)
            return False
        if head is None:
            return False
        # Requests with CORS, and paths that must be unquoted, are passed to uvicorn's protocol.
        kind = find_kind(head.method, head.path) if "%" not in head.path and "#" not in head.path else None
        if "origin" in head.connection_headers and self._gateway.is_for_asgi(kind):
            kind = None
        if kind is None:
            self._forward(head)
        else:
            self._begin_gateway_request(kind, head)
        return True

    def _begin_gateway_request(self, kind: RequestKind, head: ParsedHead) -> None:
        address = self._gateway.addresses.client(self._peer, head.connection_headers.get("x-forwarded-for"))
        target = target_of(kind, head.path, head.target.partition("?")[2])
        x = received_now(head.method, target, head.headers, address, kind.dialect)
        self._cycle = cycle = RequestCycle(self, self._loop, kind, x, head)
        length, arrived = head.length, self._arrived
        complete: bytes | None = None
        if length is not None and length <= len(arrived):
            complete, self._arrived = (arrived, b"") if length == len(arrived) else (arrived[:length], arrived[length:])
        else:
            cycle.ended = False
            self._framing, self._body_consumer = head.framing(), cycle
        cycle.body = self._gateway.body(x, cycle.receive, complete)
        if self._task is None:
            # The task needs a new context, because forwarded requests have set context variables in the current one.
            self._task = self._loop.create_task(self._serve(), context=Context())
            self._state.tasks.add(self._task)
            self._task.add_done_callback(self._state.tasks.discard)
        elif self._next_request is not None and not self._next_request.done():
            self._next_request.set_result(None)

    def _forward(self, head: ParsedHead) -> None:
        fallback = self._fallback
        if fallback is None:
            fallback = UvicornFallback(self, self._transport, self._context)
            self._fallback = fallback
            if self._drained is not None:
                fallback.pause_writing()
        self._forwarded = True
        self._framing = head.framing()
        self._body_consumer = fallback
        fallback.begin(head)

    def _take_body(self, framing: Framing) -> None:
        consumer = self._body_consumer
        assert consumer is not None
        body, self._arrived = framing.take(self._arrived)
        # If the gateway has already responded, the remaining body is discarded. uvicorn must receive the complete body,
        # because it detects the end itself.
        if body and (consumer is self._cycle or consumer is self._fallback):
            consumer.feed_body(body)
        if framing.done:
            self._framing = self._body_consumer = None
            if not self._lost:
                consumer.end_body()
            if self._cycle is None and not self._forwarded:
                self._mark_idle()

    def _finish_request(self) -> None:
        """End an answered request and begin the next one."""
        self._mark_idle()
        self.resume_reading()
        self._advance()

    def _mark_idle(self) -> None:
        self._idle_since = self._loop.time()

    def _refuse(self, response: bytes) -> None:
        """End the connection after malformed input. A request that is still reading its body is cancelled."""
        answering = self._cycle or (self._fallback if self._forwarded else None)
        if answering is None or not answering.begun:
            self.write(response)
        protocol.linger(self._transport, self, self._state.connections)

    # From requests to responses.

    async def _serve(self) -> None:
        """Answer the requests to the gateway one after the other."""
        cycle = self._cycle
        try:
            while True:
                while (cycle := self._cycle) is None:
                    self._next_request = waiter = self._loop.create_future()
                    await waiter
                assert cycle.body is not None
                await self._gateway.serve(cycle.kind, cycle.x, cycle.body, cycle)
                self._state.total_requests += 1
                # Break the reference cycle between cycle and body, so that no garbage collection is needed.
                self._cycle = cycle.body = None
                if self.stopping or not cycle.keeps_alive:
                    self._close()
                    return
                self._finish_request()
        except AnswerBroken:
            self._abandon(cycle)
        except BadHeader:
            log.warning("ingress.bad_header", request_id=cycle.x.request_id if cycle else None)
            self._abandon(cycle)
        except Exception:
            log.exception("ingress.fault", request_id=cycle.x.request_id if cycle else None)
            self._abandon(cycle)
        except asyncio.CancelledError:
            self._abandon(cycle)
            raise

    def _abandon(self, cycle: RequestCycle | None) -> None:
        if cycle is not None and not cycle.begun:
            self.write(_FAULT)
        self._close()

    def _close(self) -> None:
        # This task is about to end, so `connection_lost` must not cancel it.
        self._task = None
        if not self._lost:
            protocol.close(self._transport, self, self._state.connections)

    # Time limits.

    def _check_progress(self) -> None:
        """Close the connection if the client has made no progress since the last check, or was idle for too long. The
        client must send the request that it has begun, and must read its response. These checks cost one timer for each
        connection, and nothing for each request."""
        awaited = self._awaited_from_client()
        if awaited is not None and awaited is self._awaited:
            self._transport.abort()
            return
        self._awaited = awaited
        delay = protocol.CHECK_INTERVAL_SECONDS
        if awaited is None and self._idle_since is not None and self._cycle is None and not self._forwarded:
            remaining = self._idle_since + self._context.config.timeout_keep_alive - self._loop.time()
            if remaining <= 0:
                self._transport.close()
                return
            delay = min(delay, remaining)
        self._check_timer = self._loop.call_later(delay, self._check_progress)

    def _awaited_from_client(self) -> object:
        """Return an object that represents what the client must do next, or None if nothing. The object changes when
        the client makes progress."""
        if self._transport.is_closing():
            return self._transport
        if self._drained is not None:
            return self._drained
        # Until a request has been answered, the code that reads its body enforces the time limit.
        if self._cycle is not None or self._forwarded:
            return None
        if self._framing is not None:
            return self._framing
        if self._heads.partial is not None:
            return self._heads.partial
        return self if self._idle_since is None else None
