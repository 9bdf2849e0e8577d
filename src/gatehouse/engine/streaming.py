"""Streams answers to the client."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine, Mapping
from typing import Any, Final

import structlog

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.view import Unreadable
from gatehouse.engine.dlp.streams.stream import StreamGuard
from gatehouse.engine.exchange import Answer, Exchange
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.routing.failed_attempts import AllProvidersFailed, ProviderTimeout
from gatehouse.engine.settling import Settlement
from gatehouse.engine.stages.calls.record import Recorder
from gatehouse.engine.verdict import Refuse, Verdict
from gatehouse.foundation.errors import Internal, Refusal

log = structlog.get_logger(__name__)

#: Interval of the comments that are sent to a client that waits for an approval, because proxies close idle
#: connections.
KEEP_ALIVE_SECONDS: Final = 5.0
_KEEP_ALIVE: Final = b": waiting for approval\n\n"


#: beginning of the names of headers that a held stream sends as comments
_LATE_HEADER_PREFIX: Final = "X-Gateway-"


class DlpStopped(Exception):
    """Ends a stream with a refusal of DLP."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


async def kept_alive(work: asyncio.Future[Any], comment: bytes = _KEEP_ALIVE) -> AsyncGenerator[bytes, None]:
    """Yield a comment repeatedly until `work` is done. The first one is sent at once."""
    yield comment
    while not (await asyncio.wait({work}, timeout=KEEP_ALIVE_SECONDS))[0]:
        yield comment


def late_headers(headers: Mapping[str, str]) -> bytes:
    """Return headers as comments, for a stream whose headers have been sent. Values have no line breaks."""
    lines = [f": {name}: {value}\n" for name, value in headers.items() if name.startswith(_LATE_HEADER_PREFIX)]
    return ("".join(lines) + "\n").encode() if lines else b""


class AnswerBroken(Exception):
    """Ends a stream that cannot contain an error event. The connection must be closed, so that the client does not take
    the answer for a complete one."""


class Blocks:
    """Iterates over the blocks of `_read`, and calls `_end` in every case. This is a class because closing a generator
    that was never started does not run any of its code."""

    def __init__(self) -> None:
        self._blocks = self._read()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._blocks

    def __anext__(self) -> Awaitable[bytes]:
        return self._blocks.__anext__()

    async def aclose(self) -> None:
        await self._blocks.aclose()
        await self._end()

    def _read(self) -> AsyncGenerator[bytes, None]:
        raise NotImplementedError

    async def _end(self) -> None:
        """Release all resources. It is idempotent, and is also called after the last block."""
        raise NotImplementedError


class AnswerStream(Blocks):
    """The stream of an answer's events for the client. In every case (complete, broken, abandoned or never started),
    the call to the provider is closed and the request is recorded once."""

    def __init__(
        self,
        settling: Settlement,
        dialect: Dialect,
        reply: Reply,
        exchange: Exchange,
        recorder: Recorder,
        *,
        guard: StreamGuard | None,
        ports: Ports,
    ) -> None:
        self._settling = settling
        self._dialect = dialect
        self._reply = reply
        self._exchange = exchange
        self._recorder = recorder
        self._guard = guard
        self._ports = ports
        self._pending = b""
        self._approval: asyncio.Future[Verdict] | None = None
        super().__init__()
        exchange.outcome, exchange.status = "cancelled", 499

    async def _read(self) -> AsyncGenerator[bytes, None]:
        exchange = self._exchange
        exchange.time_to_first_token_ms = self._settling.since(exchange.identified.received.started)
        try:
            async for block in self._untouched() if self._guard is None else self._guarded(self._guard):
                yield block
            exchange.outcome, exchange.status = "success", 200
        except (ProviderFailed, Unreadable) as failed:
            # Before the error, the client receives those events that the guard permits.
            async for block in self._permitted_remainder():
                yield block
            yield self._broken(*_stream_error(failed))
            self._end_without_event()
        except DlpStopped as stopped:
            yield self._broken(stopped.refusal, stopped.refusal.code)
            exchange.outcome = "refused"
        except Refusal as error:
            # The journal did not accept the record, or a tier failed. An error event replaces the last event.
            yield self._broken(error, error.code)
            self._end_without_event()
        except Exception:
            log.exception("engine.stream_fault", request_id=exchange.identified.received.request_id)
            yield self._broken(Internal(), Internal.code)
        finally:
            await self._end()

    async def _untouched(self) -> AsyncGenerator[bytes, None]:
        assert self._reply.events is not None
        async for block in self._reply.events:
            if self._reply.finished:
                # The record is written before the last block is sent, so that a complete answer always has a record.
                await self._done()
            yield block

    async def _guarded(self, guard: StreamGuard) -> AsyncGenerator[bytes, None]:
        reply = self._reply
        assert reply.events is not None
        async for block in reply.events:
            permitted = await guard.push(block)
            if guard.pending_bytes + guard.kept_characters > self._ports.max_response_bytes:
                raise ProviderFailed("reply_too_large")
            if reply.finished:
                permitted += await guard.finish()
            if reply.finished or guard.is_halted:
                async for early in self._decided(permitted):
                    yield early
                permitted = self._pending
            if reply.finished:
                await self._done()
            if permitted:
                yield permitted
        if not reply.finished:
            async for last in self._last(guard):
                yield last

    async def _permitted_remainder(self) -> AsyncGenerator[bytes, None]:
        """Yield the events that the guard still holds back when a stream breaks, as far as they are permitted."""
        if self._guard is None or self._guard.is_halted:
            return
        with contextlib.suppress(DlpStopped, Refusal):
            async for last in self._last(self._guard):
                yield last

    async def _last(self, guard: StreamGuard) -> AsyncGenerator[bytes, None]:
        async for early in self._decided(await guard.finish()):
            yield early
        if self._pending:
            yield self._pending

    async def _done(self) -> None:
        exchange = self._exchange
        exchange.outcome, exchange.status = "success", 200
        self._timed()
        self._settling.price(self._reply, exchange)
        await self._settling.finish(exchange, self._recorder)

    async def _decided(self, permitted: bytes) -> AsyncGenerator[bytes, None]:
        """Yield blocks while the guard waits for approvals, and set `_pending` to the bytes that may be sent after
        them. Raises `DlpStopped`."""
        guard, call_request = self._guard, self._exchange.call_request
        assert guard is not None
        assert call_request is not None
        while guard.pending_approval is not None:
            if permitted:
                yield permitted
            hold = pipeline.STREAM_HOLD(call_request, guard.pending_approval, self._ports)
            # `_end` cancels the task if the client disconnects during the wait.
            self._approval = approval = asyncio.ensure_future(pipeline.AWAIT_APPROVAL(call_request, hold, self._ports))
            async for comment in kept_alive(approval):
                yield comment
            verdict = approval.result()
            if isinstance(verdict, Refuse) and verdict.error is hold.denied:
                raise DlpStopped(hold.denied)
            try:
                pipeline.obey(verdict)
            finally:
                del verdict
            permitted = await guard.approve()
        if guard.refusal is not None:
            if permitted:
                yield permitted
            raise DlpStopped(guard.refusal)
        self._pending = permitted

    def _end_without_event(self) -> None:
        if self._exchange.call_request is not None and self._exchange.call_request.call.answer_form == "binary":
            raise AnswerBroken

    def _broken(self, error: Refusal, code: str | None) -> bytes:
        """Return the event that ends a broken stream, so that the client can tell it from a complete one."""
        exchange = self._exchange
        exchange.outcome, exchange.status, exchange.error_code = "error", error.status, code
        return self._dialect.render_stream_error(error)

    async def _end(self) -> None:
        if self._approval is not None:
            await _cancel(self._approval)
        with contextlib.suppress(Exception):
            await self._reply.close()
        if self._recorder.claimed:
            return
        exchange = self._exchange
        if exchange.provider_latency_ms is None or not self._reply.finished:
            self._timed()
        self._settling.price(self._reply, exchange)
        self._settling.leave(exchange, self._recorder)

    def _timed(self) -> None:
        exchange = self._exchange
        if exchange.cache != "hit":
            exchange.provider_latency_ms = self._settling.since(exchange.identified.received.started)


class ApprovalStream(Blocks):
    """A stream that begins before its call, in order to wait for an approval. `work` returns the answer and records the
    request. If the client disconnects before the stream is read, this class records the request."""

    def __init__(
        self,
        work: Coroutine[Any, Any, Answer],
        dialect: Dialect,
        settling: Settlement,
        exchange: Exchange,
        recorder: Recorder,
    ) -> None:
        self._work = work
        self._dialect = dialect
        self._settling = settling
        self._exchange = exchange
        self._recorder = recorder
        super().__init__()
        exchange.outcome, exchange.status = "cancelled", 499

    async def _end(self) -> None:
        self._work.close()
        self._settling.leave(self._exchange, self._recorder)

    async def _read(self) -> AsyncGenerator[bytes, None]:
        task = asyncio.create_task(self._work)
        answer: Answer | None = None
        try:
            async for comment in kept_alive(task):
                yield comment
            answer = task.result()
        finally:
            await _cancel(task)
            if answer is None and not task.cancelled() and task.exception() is None:
                # The answer arrived while the client was disconnecting.
                await _close(task.result().stream)
        if answer.refusal is not None:
            yield self._dialect.render_stream_error(answer.refusal)
        elif answer.stream is not None:
            try:
                if late := late_headers(answer.headers):
                    yield late
                async for block in answer.stream:
                    yield block
            finally:
                await _close(answer.stream)


async def _cancel(work: asyncio.Future[Any]) -> None:
    """Cancel `work`, and return once it has ended."""
    if not work.done():
        work.cancel()
        await asyncio.wait({work})


async def _close(stream: AsyncIterator[bytes] | None) -> None:
    if stream is not None:
        await stream.aclose()  # type: ignore[attr-defined]


def _stream_error(failed: ProviderFailed | Unreadable) -> tuple[Refusal, str]:
    """Return the error of a broken stream for the client, and the error code for the record. The error has the reason
    as a word, and nothing of the provider's body."""
    if isinstance(failed, Unreadable):
        return AllProvidersFailed(
            "The provider sent an event that cannot be read; the answer is incomplete."
        ), "bad_reply"
    if failed.reason == "timeout":
        return ProviderTimeout("The provider stopped sending; the answer is incomplete."), failed.reason
    message = f"The provider ended the stream early ({failed.reason}); the answer is incomplete."
    return AllProvidersFailed(message), failed.reason
