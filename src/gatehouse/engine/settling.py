"""The end of a request: what it cost, what was set aside for it, and its one record."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from gatehouse.engine.answers import refusal
from gatehouse.engine.bound import asked_output, bound, given, most_output
from gatehouse.engine.candidate import Candidate
from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.estimate import EXPECTED_OUTPUT, answers_asked_for
from gatehouse.engine.exchange import Answer, Answered, Asked, ClientLeft, Identified
from gatehouse.engine.output_sizes import OutputSizes
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply, guess
from gatehouse.engine.routing.cost import cost
from gatehouse.engine.stages.record import Recorder
from gatehouse.engine.timing import Timing, asked_for, milliseconds
from gatehouse.foundation.errors import Internal, Refusal
from gatehouse.policy.budgets import NANO

log = structlog.get_logger(__name__)

_NOTHING: Final = Decimal(0)


class InFlight(NamedTuple):
    """A request that is being answered: its dialect, its exchange so far, and what records it."""

    dialect: Dialect
    exchange: Answered
    recorder: Recorder


class Settling:
    """One worker's. `finish` and `leave` are the two ways out; whichever comes first for a request is the only one
    that does anything, so that every exit may call either."""

    def __init__(self, ports: Ports, steps: Sequence[Callable[[Answered, Ports], None]]) -> None:
        """`steps` settle a request, in order (`pipeline.SETTLE`)."""
        self._ports = ports
        self._steps = steps
        self._output_sizes = OutputSizes()
        #: settling for clients that have left; kept here so that it is not dropped half-way
        self._leaving: set[asyncio.Task[None]] = set()

    def begin(self, dialect: Dialect, identified: Identified) -> InFlight:
        """A request whose caller is known: from here on it has a record."""
        exchange, received = Answered(identified=identified), identified.received
        if self._ports.traces is not None:
            exchange.trace = self._ports.traces.begin(received)
        if asked_for(identified):
            exchange.timing = Timing(self._ports.clock.monotonic, received.started)
            exchange.timing.part("auth")
        return InFlight(dialect, exchange, Recorder(self._ports))

    async def recorded(self, work: Coroutine[Any, Any, Answer], request: InFlight) -> Answer:
        """Return the answer that `work` gives, or the error that it ends with; recorded either way."""
        exchange = request.exchange
        try:
            return await work
        except Refusal as error:
            exchange.outcome = "error" if error.status >= 500 and exchange.attempts else "refused"
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
        except Refusal as unwritten:
            error = unwritten
        return refusal(request.dialect, error, exchange)

    def price(self, reply: Reply, answered: Answered) -> None:
        answered.usage = usage = reply.usage
        if answered.cache == "hit":
            # Also where the catalog has no price: it was paid when it was given first.
            answered.cost_usd, answered.cost_told = _NOTHING, "0"
        elif answered.chosen is not None and answered.asked is not None:
            if reply.usage_estimated:
                most = most_output(answered.asked, answered.chosen)
                if usage.output_tokens > most:
                    answered.usage = usage = msgspec.structs.replace(usage, output_tokens=most)
            else:
                self._note_output_size(usage, answered.asked, answered.chosen)
            answered.cost_usd = usd = cost(usage, answered.chosen.model)
            answered.cost_told = None if usd is None else f"{usd:f}"

    def _note_output_size(self, usage: Usage, asked: Asked, chosen: Candidate) -> None:
        """Remembers how long an answer was, unless its caller's own limit may have cut it: a few calls with a limit of
        one token must not make the model's answers look short."""
        limit = asked_output(asked.call)
        if limit is None or limit >= EXPECTED_OUTPUT:
            choices = answers_asked_for(asked.call.body)
            self._output_sizes.add(chosen.model.id, usage.output_tokens // choices)

    async def finish(self, answered: Answered, recorder: Recorder) -> None:
        """Settles and records. Returns when the record survives this process. Raises `Unavailable` when the journal
        does not take it."""
        if not recorder.claim():
            return
        try:
            self._price_unanswered(answered)
            for settle in self._steps:
                settle(answered, self._ports)
        finally:
            # Also for a client that leaves right now: the entry is queued at the call.
            written = recorder.finished(answered)
        await written

    def leave(self, answered: Answered, recorder: Recorder) -> None:
        """The same for a client that no longer waits: the entry is queued now, and nobody is cancelled. Never fails:
        nobody is there to be told, so that every fault is logged."""
        if not recorder.claim():
            return
        request_id = answered.identified.received.request_id
        written: Awaitable[None] | None = None
        try:
            self._price_unanswered(answered)
        except Exception:
            log.exception("settling.price_fault", request_id=request_id)
        try:
            written = recorder.finished(answered)
        except Refusal as error:
            log.warning("settling.record_refused", request_id=request_id, reason=error.code)
        except Exception:
            log.exception("settling.record_fault", request_id=request_id)
        task = asyncio.create_task(self._settled(answered, written))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _settled(self, answered: Answered, written: Awaitable[None] | None) -> None:
        request_id = answered.identified.received.request_id
        for settle in self._steps:
            try:
                settle(answered, self._ports)
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

    def _price_unanswered(self, answered: Answered) -> None:
        """What calls are charged that were sent and whose answer nobody waited for: the input in full, and the model's
        usual output; all together never more than was set aside for one answer."""
        asked = answered.asked
        if answered.usage is not None or not answered.unanswered or asked is None:
            return
        answered.chosen = answered.chosen or answered.unanswered[-1]
        # Looked at once, however many calls there were: a body may be megabytes long.
        input_tokens = guess.read(asked.call, given(asked).size)
        usages = [
            Usage(input_tokens=input_tokens, output_tokens=self._usual_output(asked, candidate))
            for candidate in answered.unanswered
        ]
        candidates = answered.admitted.chain if answered.admitted else answered.unanswered
        most = bound(asked, candidates, asked.call.output_limit)
        read = min(sum(usage.input_tokens for usage in usages), most.tokens)
        written = min(sum(usage.output_tokens for usage in usages), most.tokens - read)
        answered.usage = Usage(input_tokens=read, output_tokens=written)
        costs = [cost(usage, candidate.model) for usage, candidate in zip(usages, answered.unanswered, strict=True)]
        known = [usd for usd in costs if usd is not None]
        if len(known) == len(costs):
            usd = sum(known, _NOTHING)
            if most.nano_usd is not None:
                usd = min(usd, Decimal(most.nano_usd) / NANO)
            answered.cost_usd, answered.cost_told = usd, f"{usd:f}"

    def _usual_output(self, asked: Asked, candidate: Candidate) -> int:
        """The tokens that a model is likely to have answered with."""
        tokens = self._output_sizes.median(candidate.model.id)
        output = (EXPECTED_OUTPUT if tokens is None else tokens) * answers_asked_for(asked.call.body)
        return min(output, most_output(asked, candidate))

    def since(self, started: float) -> float:
        """Milliseconds."""
        return milliseconds(self._ports.clock.monotonic() - started)
