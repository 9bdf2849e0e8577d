"""Completes a request: computes its cost, settles its reservation and writes its only record."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
import structlog

from gatehouse.engine.answers import refusal
from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.dialects import TRAITS
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.exchange import Answer, CallRequest, Exchange, Identified, if_computed
from gatehouse.engine.measures.output_sizes import OutputSizes
from gatehouse.engine.money.bound import (
    bound,
    call_size,
    caller_output_limit,
    count_choices,
    max_output,
)
from gatehouse.engine.money.estimate import EXPECTED_OUTPUT_TOKENS
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply, guess
from gatehouse.engine.routing.cost import cost
from gatehouse.engine.stages.calls.record import Recorder
from gatehouse.engine.timing import Timing, is_requested, milliseconds
from gatehouse.foundation.errors import ClientLeft, Internal, Refusal
from gatehouse.policy.budgets import NANO
from gatehouse.policy.catalog import Candidate

log = structlog.get_logger(__name__)

_ZERO_USD: Final = Decimal(0)


class InFlight(msgspec.Struct, frozen=True):
    """A request in progress: its dialect, its exchange so far, and its recorder."""

    dialect: Dialect
    exchange: Exchange
    recorder: Recorder


class Settlement:
    """Completes the requests of one worker. A request ends with `finish` or `leave`. Only the first of these calls has
    an effect, so every exit path may call either of them."""

    def __init__(self, ports: Ports, steps: Sequence[Callable[[Exchange, Ports], None]]) -> None:
        """Create the settlement. `steps` are called in order to settle a request (`pipeline.settle_steps`)."""
        self._ports = ports
        self._steps = steps
        self._output_sizes = OutputSizes()
        #: tasks that settle requests of clients that have left; referenced here so that they are not garbage-collected
        self._leaving: set[asyncio.Task[None]] = set()

    def begin(self, dialect: Dialect, identified: Identified) -> InFlight:
        """Return the request in progress. Its caller is known, so a record is written when it ends, whatever the
        result."""
        exchange, received = Exchange(identified=identified), identified.received
        if self._ports.traces is not None:
            exchange.trace = self._ports.traces.begin(received)
        if is_requested(identified):
            exchange.timing = Timing(self._ports.clock.monotonic, received.started, "auth")
        return InFlight(dialect, exchange, Recorder(self._ports))

    async def recorded(self, work: Coroutine[Any, Any, Answer], request: InFlight) -> Answer:
        """Return the answer of `work`, or its error as an answer. The request is recorded in both cases."""
        exchange = request.exchange
        try:
            return await work
        except Refusal as error:
            failed = isinstance(error, Internal) or (error.status >= 500 and exchange.attempts)
            exchange.outcome = "error" if failed else "refused"
            return await self._failed(error, request)
        except (asyncio.CancelledError, ClientLeft):
            exchange.outcome, exchange.status = "cancelled", 499
            self.leave(exchange, request.recorder)
            raise
        except Exception:
            log.exception("engine.fault", request_id=exchange.identified.received.request_id)
            return await self._failed(Internal(), request)

    async def _failed(self, error: Refusal, request: InFlight) -> Answer:
        exchange = request.exchange
        exchange.status, exchange.error_code = error.status, error.code
        try:
            await self.finish(exchange, request.recorder)
        except Refusal as record_error:
            error = record_error
        return refusal(request.dialect, error, exchange)

    def price(self, reply: Reply, exchange: Exchange) -> None:
        """Store the usage and the cost of a reply in `exchange`."""
        usage, is_estimated = reply.usage()
        exchange.usage = usage
        if exchange.cacheable is not None and exchange.cacheable.cached is not None:
            # The cost is zero even if the catalog has no price, because the cached answer was charged when it was
            # stored.
            exchange.cost_usd, exchange.cost_text = _ZERO_USD, "0"
        elif exchange.chosen is not None and exchange.call_request is not None:
            if is_estimated:
                output_limit = max_output(exchange.call_request, exchange.chosen, exchange.output_limit)
                if usage.output_tokens > output_limit:
                    exchange.usage = usage = msgspec.structs.replace(usage, output_tokens=output_limit)
            else:
                self._note_output_size(usage, exchange.call_request, exchange.chosen)
            usd = None
            if not is_estimated or _has_estimated_cost(exchange.call_request):
                usd = cost(usage, exchange.chosen.model)
            exchange.cost_usd = usd
            exchange.cost_text = None if usd is None else f"{usd:f}"

    def _note_output_size(self, usage: Usage, call_request: CallRequest, chosen: Candidate) -> None:
        """Count the length of an answer, unless the caller's own limit may have truncated it. Otherwise a few calls
        with a limit of one token could lower the model's median."""
        if TRAITS[call_request.call.dialect].is_free:
            return
        # The size may not have been computed. Computing it encodes the whole body, so only the caller's limit and the
        # number of choices are read from the body.
        size = if_computed(call_size, call_request)
        limit = caller_output_limit(call_request.call) if size is None else size.output_limit
        if limit is None or limit >= EXPECTED_OUTPUT_TOKENS:
            choices = count_choices(call_request.call) if size is None else size.choices
            self._output_sizes.add(chosen.model.id, usage.output_tokens // choices)

    async def finish(self, exchange: Exchange, recorder: Recorder) -> None:
        """Settle and record the request. Returns once the record survives the end of this process. Raises `Unavailable`
        if the journal does not accept the record."""
        if not recorder.claim():
            return
        try:
            self._price_unanswered(exchange)
            for settle in self._steps:
                settle(exchange, self._ports)
        finally:
            # This call queues the entry, so it is written even if the client disconnects during the wait.
            written = recorder.finished(exchange)
        await written

    def leave(self, exchange: Exchange, recorder: Recorder) -> None:
        """Settle and record the request of a client that no longer waits. The entry is queued now, and the request is
        settled in the background. Never fails: no caller could handle an error, so every fault is logged."""
        if not recorder.claim():
            return
        request_id = exchange.identified.received.request_id
        written: Awaitable[None] | None = None
        try:
            self._price_unanswered(exchange)
        except Exception:
            log.exception("settling.price_fault", request_id=request_id)
        try:
            written = recorder.finished(exchange)
        except Refusal as error:
            log.warning("settling.record_refused", request_id=request_id, reason=error.code)
        except Exception:
            log.exception("settling.record_fault", request_id=request_id)
        task = asyncio.create_task(self._settled(exchange, written))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def wait(self) -> None:
        """Wait until all requests of clients that have left are settled and recorded."""
        while self._leaving:
            await asyncio.wait(self._leaving)

    async def _settled(self, exchange: Exchange, written: Awaitable[None] | None) -> None:
        request_id = exchange.identified.received.request_id
        for settle in self._steps:
            try:
                settle(exchange, self._ports)
            except Exception:
                log.exception("settling.fault", request_id=request_id)
        if written is None:
            return
        try:
            await written
        except Refusal as error:
            log.warning("settling.record_refused", request_id=request_id, reason=error.code)
        except Exception:
            log.exception("settling.record_fault", request_id=request_id)

    def _price_unanswered(self, exchange: Exchange) -> None:
        """Store the estimated usage and cost of calls that were sent and have no answer. Each call is estimated as its
        complete input and the median output of its model. The sum is limited to the maximum usage and cost of one call
        (`bound`)."""
        call_request = exchange.call_request
        if exchange.usage is not None or not exchange.unanswered or call_request is None:
            return
        if TRAITS[call_request.call.dialect].is_free:
            return
        exchange.chosen = exchange.chosen or exchange.unanswered[-1]
        # Estimated once for all calls, because a body may have megabytes.
        input_tokens = guess.read(call_request.call, call_size(call_request).json_bytes)
        usages = [
            Usage(
                input_tokens=input_tokens,
                output_tokens=self._usual_output(call_request, candidate, exchange.output_limit),
            )
            for candidate in exchange.unanswered
        ]
        candidates = exchange.admitted.chain if exchange.admitted else exchange.unanswered
        upper = bound(call_request, candidates, exchange.output_limit)
        read = min(sum(usage.input_tokens for usage in usages), upper.tokens)
        written = min(sum(usage.output_tokens for usage in usages), upper.tokens - read)
        exchange.usage = Usage(input_tokens=read, output_tokens=written)
        costs = [cost(usage, candidate.model) for usage, candidate in zip(usages, exchange.unanswered, strict=True)]
        known_costs = [usd for usd in costs if usd is not None]
        if len(known_costs) == len(costs) and _has_estimated_cost(call_request):
            usd = sum(known_costs, _ZERO_USD)
            if upper.nano_usd is not None:
                usd = min(usd, Decimal(upper.nano_usd) / NANO)
            exchange.cost_usd, exchange.cost_text = usd, f"{usd:f}"

    def _usual_output(self, call_request: CallRequest, candidate: Candidate, output_limit: int | None) -> int:
        """Return the likely number of output tokens of a model's answers."""
        tokens = self._output_sizes.median(candidate.model.id)
        output = (EXPECTED_OUTPUT_TOKENS if tokens is None else tokens) * count_choices(call_request.call)
        return min(output, max_output(call_request, candidate, output_limit))

    def since(self, started: float) -> float:
        """Return the milliseconds since the monotonic time `started`."""
        return milliseconds(self._ports.clock.monotonic() - started)


def _has_estimated_cost(call_request: CallRequest) -> bool:
    """Return whether the cost can be estimated from the call when the provider reports no usage. It cannot for images,
    transcriptions and translations of recordings."""
    return TRAITS[call_request.call.dialect].has_estimated_cost
