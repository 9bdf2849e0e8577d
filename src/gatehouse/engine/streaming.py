"""A streamed answer on its way to the client."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine
from typing import Any, Final

import structlog

from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.view import Unreadable
from gatehouse.engine.dlp.stream import StreamGuard
from gatehouse.engine.exchange import Answer, Answered
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.routing.attempts import AllProvidersFailed, ProviderTimeout
from gatehouse.engine.settling import Settling
from gatehouse.engine.stages import dlp_output
from gatehouse.engine.stages.record import Recorder
from gatehouse.foundation.errors import Internal, Refusal

log = structlog.get_logger(__name__)

#: A comment goes to a client that waits for a person's decision: a line that nothing moves on is closed by proxies.
KEEP_ALIVE_SECONDS: Final = 5.0
_KEEP_ALIVE: Final = b": waiting for approval\n\n"


class DlpStopped(Exception):
    """The stream ends here with this refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


async def kept_alive(work: asyncio.Future[Any]) -> AsyncGenerator[bytes, None]:
    """Comments until the work is done, the first at once."""
    yield _KEEP_ALIVE
    while not (await asyncio.wait({work}, timeout=KEEP_ALIVE_SECONDS))[0]:
        yield _KEEP_ALIVE


class Blocks:
    """The blocks of bytes that `_read` gives, with something to do at the end however it ends. A class, because a
    generator that was never begun does nothing when it is closed."""

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
        """Also after the end was reached."""
        raise NotImplementedError


class AnswerStream(Blocks):
    """The events for the client. However it ends (read, broken, left, or never begun), the provider's call is closed
    and the request recorded, once."""

    def __init__(
        self,
        settling: Settling,
        dialect: Dialect,
        reply: Reply,
        answered: Answered,
        recorder: Recorder,
        *,
        guard: StreamGuard | None,
        ports: Ports,
    ) -> None:
        self._settling = settling
        self._dialect = dialect
        self._reply = reply
        self._answered = answered
        self._recorder = recorder
        self._guard = guard
        self._ports = ports
        self._left = b""
        self._approval: asyncio.Future[bool] | None = None
        super().__init__()
        answered.outcome, answered.status = "cancelled", 499

    async def _read(self) -> AsyncGenerator[bytes, None]:
        answered = self._answered
        answered.time_to_first_token_ms = self._settling.since(answered.identified.received.started)
        try:
            async for block in self._untouched() if self._guard is None else self._guarded(self._guard):
                yield block
            answered.outcome, answered.status = "success", 200
        except (ProviderFailed, Unreadable) as failed:
            # What had come before is the client's, as far as it may have it.
            async for early in self._rest():
                yield early
            yield self._broken(*_told(failed))
        except DlpStopped as stopped:
            yield self._broken(stopped.refusal, stopped.refusal.code)
            answered.outcome = "refused"
        except Refusal as error:
            # The journal would not take the record, or a tier failed: the stream ends without its last event, and
            # says why.
            yield self._broken(error, error.code)
        except Exception:
            log.exception("engine.stream_fault", request_id=answered.identified.received.request_id)
            yield self._broken(Internal(), Internal.code)
        finally:
            await self._end()

    async def _untouched(self) -> AsyncGenerator[bytes, None]:
        assert self._reply.events is not None
        async for block in self._reply.events:
            if self._reply.finished:
                # A client that has its whole answer can rely on its record.
                await self._done()
            yield block

    async def _guarded(self, guard: StreamGuard) -> AsyncGenerator[bytes, None]:
        reply = self._reply
        assert reply.events is not None
        async for block in reply.events:
            passed = await guard.push(block)
            if guard.held > self._ports.max_response_bytes:
                raise ProviderFailed("reply_too_large")
            if reply.finished:
                passed += await guard.finish()
            if reply.finished or guard.waits:
                async for early in self._decided(passed):
                    yield early
                passed = self._left
            if reply.finished:
                await self._done()
            if passed:
                yield passed
        if not reply.finished:
            async for last in self._last(guard):
                yield last

    async def _rest(self) -> AsyncGenerator[bytes, None]:
        """What a stream that broke has left behind in the guard."""
        if self._guard is None or self._guard.waits:
            return
        with contextlib.suppress(DlpStopped, Refusal):
            async for last in self._last(self._guard):
                yield last

    async def _last(self, guard: StreamGuard) -> AsyncGenerator[bytes, None]:
        async for early in self._decided(await guard.finish()):
            yield early
        if self._left:
            yield self._left

    async def _done(self) -> None:
        answered = self._answered
        answered.outcome, answered.status = "success", 200
        self._timed()
        self._settling.price(self._reply, answered)
        await self._settling.finish(answered, self._recorder)

    async def _decided(self, passed: bytes) -> AsyncGenerator[bytes, None]:
        """What may go to the client before the guard's questions are answered; what may go after is `_left`. Raises
        `DlpStopped`."""
        guard, asked = self._guard, self._answered.asked
        assert guard is not None
        assert asked is not None
        while guard.asks is not None:
            if passed:
                yield passed
            hold = dlp_output.asked_about(asked, guard.asks, self._ports)
            # Ended in `_end`, for a client that leaves meanwhile.
            self._approval = approval = asyncio.ensure_future(dlp_output.approved(asked, hold, self._ports))
            async for beat in kept_alive(approval):
                yield beat
            if not approval.result():
                raise DlpStopped(hold.denied)
            passed = guard.go_on()
        if guard.refusal is not None:
            if passed:
                yield passed
            raise DlpStopped(guard.refusal)
        self._left = passed

    def _broken(self, error: Refusal, code: str | None) -> bytes:
        """The event that ends a broken stream: never a silent cut."""
        answered = self._answered
        answered.outcome, answered.status, answered.error_code = "error", error.status, code
        return self._dialect.render_stream_error(error)

    async def _end(self) -> None:
        if self._approval is not None:
            await _cancelled(self._approval)
        with contextlib.suppress(Exception):
            await self._reply.close()
        if self._recorder.claimed:
            return
        answered = self._answered
        if answered.provider_latency_ms is None or not self._reply.finished:
            self._timed()
        self._settling.price(self._reply, answered)
        self._settling.leave(answered, self._recorder)

    def _timed(self) -> None:
        answered = self._answered
        if answered.cache != "hit":
            answered.provider_latency_ms = self._settling.since(answered.identified.received.started)


class HeldStream(Blocks):
    """A stream that begins before its call does, because a person is asked first. `work` gives the answer, recorded in
    any case; left before it began, the request is recorded here."""

    def __init__(
        self,
        work: Coroutine[Any, Any, Answer],
        dialect: Dialect,
        settling: Settling,
        answered: Answered,
        recorder: Recorder,
    ) -> None:
        self._work = work
        self._dialect = dialect
        self._settling = settling
        self._answered = answered
        self._recorder = recorder
        super().__init__()
        answered.outcome, answered.status = "cancelled", 499

    async def _end(self) -> None:
        self._work.close()
        self._settling.leave(self._answered, self._recorder)

    async def _read(self) -> AsyncGenerator[bytes, None]:
        answer = asyncio.create_task(self._work)
        told: Answer | None = None
        try:
            async for beat in kept_alive(answer):
                yield beat
            told = answer.result()
        finally:
            await _cancelled(answer)
            if told is None and not answer.cancelled() and answer.exception() is None:
                # It came just as the client left.
                await _closed(answer.result().stream)
        if told.refusal is not None:
            yield self._dialect.render_stream_error(told.refusal)
        elif told.stream is not None:
            try:
                async for block in told.stream:
                    yield block
            finally:
                await _closed(told.stream)


async def _cancelled(work: asyncio.Future[Any]) -> None:
    """Nothing of it goes on when this returns."""
    if not work.done():
        work.cancel()
        await asyncio.wait({work})


async def _closed(stream: AsyncIterator[bytes] | None) -> None:
    if stream is not None:
        await stream.aclose()  # type: ignore[attr-defined]


def _told(failed: ProviderFailed | Unreadable) -> tuple[Refusal, str]:
    """What a client is told whose stream broke off (the reason as a word, nothing of the provider's body), and what
    the record says."""
    if isinstance(failed, Unreadable):
        return AllProvidersFailed(
            "The provider sent an event that cannot be read; the answer is incomplete."
        ), "bad_reply"
    if failed.reason == "timeout":
        return ProviderTimeout("The provider stopped sending; the answer is incomplete."), failed.reason
    told = f"The provider broke the stream off ({failed.reason}); the answer is incomplete."
    return AllProvidersFailed(told), failed.reason
