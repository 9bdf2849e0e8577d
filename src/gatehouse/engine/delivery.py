"""Delivers a provider's reply to the client, as a whole body or as a stream."""

from collections.abc import Callable, Sequence
from types import CoroutineType
from typing import TypeAlias

import msgspec

from gatehouse.engine.answers import reply_headers
from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.dlp.streams.stream import StreamGuard
from gatehouse.engine.exchange import Answer, CallRequest
from gatehouse.engine.pipeline import Step, obey
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply
from gatehouse.engine.settling import InFlight, Settlement
from gatehouse.engine.streaming import AnswerStream
from gatehouse.engine.timing import HEADER as TIMING
from gatehouse.engine.timing import timed
from gatehouse.engine.verdict import ALLOW, Rewrite

#: Returns the guard that inspects a stream, or None if the stream passes unchanged (`pipeline.STREAM_GUARD`).
Guard: TypeAlias = Callable[[CallRequest, Dialect, Ports], StreamGuard | None]


class Delivery:
    """Delivers the replies of one worker."""

    def __init__(self, ports: Ports, settling: Settlement, steps: Sequence[Step], guard: Guard) -> None:
        """Create the delivery. `steps` inspect a whole answer (`pipeline.ANSWER`)."""
        self._ports = ports
        self._settling = settling
        self._steps = steps
        self._guard = guard

    async def deliver(self, reply: Reply, call_request: CallRequest, request: InFlight) -> Answer:
        """Return the answer to the client. If an inspection refuses the reply, closes the reply and raises the
        `Refusal`."""
        dialect, exchange, recorder = request.dialect, request.exchange, request.recorder
        try:
            if reply.events is None:
                return await self._whole(reply, call_request, request)
            await recorder.opened(exchange)
            guard = self._guard(call_request, dialect, self._ports)
            stream = AnswerStream(self._settling, dialect, reply, exchange, recorder, guard=guard, ports=self._ports)
            return Answer(status=200, headers=reply_headers(reply, exchange), stream=stream, exchange=exchange)
        except BaseException:
            await reply.close()
            raise

    async def _whole(self, reply: Reply, call_request: CallRequest, request: InFlight) -> Answer:
        """Price, inspect and record a whole answer."""
        exchange, timing = request.exchange, request.exchange.timing
        body = reply.body or b""
        # The provider produced the reply, so it is charged even if an inspection refuses it.
        self._settling.price(reply, exchange)
        steps = self._steps if timing is None else timing.steps(self._steps)
        for inspect, _ in steps:
            verdict = inspect(call_request, body, self._ports)
            if verdict is not ALLOW:
                if isinstance(verdict, CoroutineType):
                    verdict = await verdict
                if isinstance(verdict, Rewrite):
                    body = verdict.body if isinstance(verdict.body, bytes) else msgspec.json.encode(verdict.body)
                    continue
                try:
                    obey(verdict)
                finally:
                    del verdict
        exchange.outcome, exchange.status = "success", reply.status
        headers = reply_headers(reply, exchange)
        if exchange.cost_text is not None:
            headers["X-Cost-USD"] = exchange.cost_text
        await timed(timing, "record", self._settling.finish(exchange, request.recorder))
        if timing is not None:
            headers[TIMING] = timing.header()
        return Answer(status=reply.status, headers=headers, body=body, exchange=exchange)
