"""A streamed answer on its way to the client."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable

import structlog

from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.exchange import Answered
from gatehouse.engine.providers import Reply
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.routing.attempts import AllProvidersFailed, ProviderTimeout
from gatehouse.engine.settling import Settling
from gatehouse.engine.stages.record import Recorder
from gatehouse.foundation.errors import Internal, Refusal

log = structlog.get_logger(__name__)


class AnswerStream:
    """The events for the client. However it ends (read, broken, left, or never begun), the provider's call is closed
    and the request recorded, once. A class, because a generator that was never begun does nothing when it is closed.
    """

    def __init__(
        self, settling: Settling, dialect: Dialect, reply: Reply, answered: Answered, recorder: Recorder
    ) -> None:
        self._settling = settling
        self._dialect = dialect
        self._reply = reply
        self._answered = answered
        self._recorder = recorder
        self._blocks = self._read()
        answered.outcome, answered.status = "cancelled", 499

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._blocks

    def __anext__(self) -> Awaitable[bytes]:
        return self._blocks.__anext__()

    async def aclose(self) -> None:
        await self._blocks.aclose()
        await self._end()

    async def _read(self) -> AsyncGenerator[bytes, None]:
        answered, reply = self._answered, self._reply
        assert reply.events is not None
        started = answered.identified.received.started
        answered.time_to_first_token_ms = self._settling.since(started)
        try:
            async for block in reply.events:
                if reply.finished:
                    # A client that has its whole answer can rely on its record.
                    answered.outcome, answered.status = "success", 200
                    answered.provider_latency_ms = self._settling.since(started)
                    self._settling.price(reply, answered)
                    await self._settling.finish(answered, self._recorder)
                yield block
            answered.outcome, answered.status = "success", 200
        except ProviderFailed as failed:
            yield self._broken(_told(failed), failed.reason)
        except Refusal as error:
            # The journal would not take the record: the stream ends without its last event, and says why.
            yield self._broken(error, error.code)
        except Exception:
            log.exception("engine.stream_fault", request_id=answered.identified.received.request_id)
            yield self._broken(Internal(), Internal.code)
        finally:
            await self._end()

    def _broken(self, error: Refusal, code: str | None) -> bytes:
        """The event that ends a broken stream: never a silent cut."""
        answered = self._answered
        answered.outcome, answered.status, answered.error_code = "error", error.status, code
        return self._dialect.render_stream_error(error)

    async def _end(self) -> None:
        with contextlib.suppress(Exception):
            await self._reply.close()
        answered = self._answered
        if answered.provider_latency_ms is None or not self._reply.finished:
            answered.provider_latency_ms = self._settling.since(answered.identified.received.started)
        self._settling.price(self._reply, answered)
        self._settling.leave(answered, self._recorder)


def _told(failed: ProviderFailed) -> Refusal:
    """What a client is told whose stream broke off: the reason as a word, nothing of the provider's body."""
    if failed.reason == "timeout":
        return ProviderTimeout("The provider stopped sending; the answer is incomplete.")
    return AllProvidersFailed(f"The provider broke the stream off ({failed.reason}); the answer is incomplete.")
