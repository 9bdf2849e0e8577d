"""Answers model calls: runs a request through the pipeline and records exactly one outcome.

`Engine.answer` never raises because of an action of a client or provider, or because of a revoked right: it returns
refusals as answers in the client's dialect. Only cancellation and `ClientLeft` are raised, after the request was
recorded, because no client is left to receive an answer.
"""

from collections.abc import Coroutine, Iterator
from types import CoroutineType
from typing import Any

import structlog

from gatehouse.engine import pipeline, scan
from gatehouse.engine.answers import event_stream_headers, refusal
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.delivery import Delivery
from gatehouse.engine.exchange import (
    NO_CONTEXT,
    Admitted,
    Answer,
    Cacheable,
    CallRequest,
    CheckedCaller,
    Exchange,
    HostContext,
    OnAdmitted,
    ReadBody,
    Received,
)
from gatehouse.engine.mcp.serving import ToolServer
from gatehouse.engine.pipeline import CallState, Step, advanced, call_request_of, obeyed, walk, walk_now
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply
from gatehouse.engine.routing.attempts import Attempts
from gatehouse.engine.routing.chain import Chooser
from gatehouse.engine.routing.shadows import Shadows
from gatehouse.engine.settling import InFlight, Settlement
from gatehouse.engine.streaming import ApprovalStream
from gatehouse.engine.timing import timed
from gatehouse.engine.tool_runs.running import ToolRuns
from gatehouse.engine.verdict import ALLOW, Hold
from gatehouse.foundation.errors import Internal, Refusal
from gatehouse.foundation.identity import Caller

log = structlog.get_logger(__name__)


class Engine:
    """The engine of one worker."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self._attempts = Attempts(ports)
        self.circuits = self._attempts.circuits
        self.chooser = Chooser(self._attempts, pipeline.CANDIDATE)
        self._call_steps = pipeline.call_steps(self.chooser.choose)
        self._settling = Settlement(ports, pipeline.settle_steps(lambda x, _: self.shadows.follow(x)))
        self.shadows: Shadows = Shadows(ports, self._attempts, self._settling, self.chooser.judged)
        #: answers requests to MCP servers
        self.tools = ToolServer(ports)
        self._tool_runs = ToolRuns(ports, self.tools.calls, self.answer)
        self._delivery = Delivery(ports, self._settling, pipeline.ANSWER, pipeline.STREAM_GUARD)

    async def answer(
        self,
        x: Received,
        read: ReadBody | None = None,
        on_admitted: OnAdmitted | None = None,
        *,
        caller: Caller | None = None,
        host: HostContext = NO_CONTEXT,
    ) -> Answer:
        """Return the answer to a model call: a body, or a stream, which must be read to its end or closed.

        `read` reads the body of the request. It is called after all checks of the caller. If it is None, `x.body` is
        the body. `on_admitted` is called once maintenance can no longer refuse the request. `caller` is the caller if
        the host has identified it."""
        assert x.dialect is not None
        dialect = DIALECTS[x.dialect]
        try:
            walk_now(pipeline.ARRIVAL, x, self.ports)
            if caller is None:
                identified = obeyed(await pipeline.IDENTIFY(x, self.ports, "chat:write", host))
            else:
                identified = obeyed(await pipeline.IDENTIFY_KNOWN(x, caller, self.ports, "chat:write", host))
        except Refusal as error:
            # The caller is unknown, so no organization can have a record of the request. The refusal is only counted.
            self.ports.meter.refused(error.code)
            return refusal(dialect, error)
        except Exception:
            log.exception("engine.fault", request_id=x.request_id)
            return refusal(dialect, Internal())
        request = self._settling.begin(dialect, identified)
        answer = await self._settling.recorded(self._answer(request, read, on_admitted), request)
        form = request.exchange.tool_run
        return answer if form is None else await self._tool_runs.proceed(form, answer)

    async def stop(self) -> None:
        """Cancel the copies for shadows, and wait until all requests that have ended are settled and recorded."""
        await self.shadows.stop()
        await self._settling.wait()

    async def identify(self, x: Received, scope: str) -> CheckedCaller:
        """Identify the caller on a path that calls no model, such as the list of models. Raises `Refusal`."""
        walk_now(pipeline.ARRIVAL, x, self.ports)
        identified = obeyed(await pipeline.IDENTIFY(x, self.ports, scope))
        return pipeline.checked(await walk(pipeline.CALLER, identified, self.ports))

    async def scan(self, x: CheckedCaller, read: ReadBody) -> Answer:
        """Return the actions that the policy would take on a text (`POST /v1/scan`). Raises `Refusal`."""
        return await scan.answer(x, read, self.ports)

    async def _answer(self, request: InFlight, read: ReadBody | None, on_admitted: OnAdmitted | None) -> Answer:
        exchange, timing = request.exchange, request.exchange.timing
        pipeline.note_caller(await walk(pipeline.MODEL_CALLER, exchange.identified, self.ports, timing), exchange)
        call_request = await timed(timing, "body", self._read(request, read, on_admitted))
        steps = iter(self._call_steps) if timing is None else timing.steps(self._call_steps)
        return await self._proceed(request, call_request, steps)

    async def _read(self, request: InFlight, read: ReadBody | None, on_admitted: OnAdmitted | None) -> CallRequest:
        """Return the call in the body of the request."""
        received = request.exchange.identified.received
        body = received.body if read is None else await read()
        # Maintenance may have begun while the body arrived.
        walk_now(pipeline.ARRIVAL, received, self.ports)
        # The event loop runs no other task between that check and this call.
        if on_admitted is not None:
            on_admitted()
        request.exchange.tool_run = form = self._tool_runs.form(body, request.exchange.identified)
        if form is not None:
            body = form.body()
        call = request.dialect.decode(body, received.headers)
        request.exchange.call_request = x = pipeline.decoded(request.exchange.identified, call, len(body))
        return x

    async def _proceed(
        self, request: InFlight, x: CallState, steps: Iterator[Step], hold: Hold | None = None
    ) -> Answer:
        """Run the remaining steps of the call, which has reached the state `x`, and then call the provider. Waits for
        the approval of `hold` first."""
        exchange, ports = request.exchange, self.ports
        if hold is not None:
            await self._approved(hold, x)
        for check, _ in steps:
            result = check(x, ports)
            if result is ALLOW:
                continue
            if isinstance(result, CoroutineType):
                result = await result
            try:
                x, hold = advanced(x, result, exchange)
            finally:
                del result
            if hold is not None:
                if call_request_of(x).call.stream and not exchange.stream_awaits_approval:
                    return await self._hold_stream(request, self._proceed(request, x, steps, hold))
                await self._approved(hold, x)
        reply = await timed(exchange.timing, "provider", self._reply(x, exchange))
        return await self._delivery.deliver(reply, call_request_of(x), request)

    async def _approved(self, hold: Hold, x: CallState) -> None:
        pipeline.obey(await pipeline.AWAIT_APPROVAL(call_request_of(x), hold, self.ports))

    async def _hold_stream(self, request: InFlight, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Begin the stream at once, and continue it when a person has decided."""
        exchange = request.exchange
        exchange.stream_awaits_approval = True
        await request.recorder.opened(exchange)
        recorded = self._settling.recorded(work, request)
        stream = ApprovalStream(recorded, request.dialect, self._settling, exchange, request.recorder)
        return Answer(status=200, headers=event_stream_headers(exchange), stream=stream, exchange=exchange)

    async def _reply(self, x: CallState, exchange: Exchange) -> Reply:
        """Return the cached answer, or a provider's answer."""
        cacheable, admitted = (x, x.admitted) if isinstance(x, Cacheable) else (None, x)
        assert isinstance(admitted, Admitted)
        reply = None if cacheable is None else pipeline.CACHED(cacheable)
        if reply is not None:
            exchange.chosen = admitted.chain[0]
        else:
            started = self.ports.clock.monotonic()
            try:
                reply = await self._attempts.answer(admitted, exchange)
            except Refusal as error:
                if error.status >= 500:
                    # The gateway wrote this text, so it needs no inspection.
                    raise
                raise await pipeline.ERROR_TEXT(admitted.call_request, error, self.ports) from None
            exchange.provider_latency_ms = self._settling.since(started)
            if cacheable is not None and exchange.chosen is admitted.chain[0]:
                reply = pipeline.FIRST_CHOICE(cacheable, reply)
        return pipeline.WATCH(admitted.call_request, reply)
