"""Walks a request through the pipeline, and makes sure that exactly one outcome comes of it.

`Engine.answer` never raises for anything a client, a provider or a revoked right can do: refusals come back as answers
in the client's dialect. Only cancellation passes through, recorded, because nobody is left to answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable

import structlog

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import Admitted, Answer, Answered, Asked, Candidate, Identified, Received
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.routing.attempts import AllProvidersFailed, Attempts, ProviderTimeout
from gatehouse.engine.routing.cost import cost
from gatehouse.engine.stages import authenticate, model_access, route
from gatehouse.engine.stages.maintenance import InMaintenance
from gatehouse.engine.stages.record import Recorder
from gatehouse.engine.verdict import Hold, Refuse, Rewrite, Verdict
from gatehouse.foundation.errors import Internal, Refusal, Unavailable
from gatehouse.policy.records import ModelRecord

log = structlog.get_logger(__name__)


class JournalFull(Unavailable):
    code = "journal_full"
    message = "Records cannot be written now, so requests are refused. An operator has to look."


class Engine:
    """One worker's."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._attempts = Attempts(ports)
        #: settling for clients that have left; kept here so that it is not dropped half-way
        self._leaving: set[asyncio.Task[None]] = set()

    async def answer(self, x: Received) -> Answer:
        """The answer to a model call: a body, or a stream that must be closed if it is not read to its end."""
        assert x.dialect is not None
        dialect = DIALECTS[x.dialect]
        try:
            identified = await self._identify(x, "chat:write")
        except Refusal as error:
            # Nobody is known whose record this could be: it is counted, not recorded.
            return _refusal(dialect, error, None)
        answered = Answered(identified=identified)
        recorder = Recorder(self._ports)
        try:
            return await self._answer(dialect, identified, answered, recorder)
        except Refusal as error:
            answered.outcome = "error" if error.status >= 500 and answered.attempts else "refused"
            return await self._ended(dialect, error, answered, recorder)
        except asyncio.CancelledError:
            answered.outcome, answered.status = "cancelled", 499
            self.leave(answered, recorder)
            raise
        except Exception:
            log.exception("engine.fault", request_id=x.request_id)
            return await self._ended(dialect, Internal(), answered, recorder)

    async def identify(self, x: Received, scope: str) -> Identified:
        """For gateway paths that call no model, such as the list of models. Raises `Refusal`."""
        return await self._of_the_caller(await self._identify(x, scope))

    async def usable_models(self, x: Identified) -> list[ModelRecord]:
        """The active entries of the catalog that nothing refuses to this caller, kill-switched ones included: those
        are only out for a while."""
        asked = Asked(identified=x, call=ModelCall(dialect="", model="", stream=False, body={}))
        usable = []
        for model in x.policy.models.values():
            provider = x.policy.providers.get(model.provider)
            if model.is_active and provider is not None and provider.enabled:
                verdict = await model_access.judge(asked, Candidate(provider, model), self._ports)
                if not isinstance(verdict, Refuse):
                    usable.append(model)
        return usable

    async def _identify(self, x: Received, scope: str) -> Identified:
        for check in pipeline.ON_ARRIVAL:
            _obey(await check(x, self._ports))
        return await authenticate.caller(x, self._ports, scope)

    async def _of_the_caller(self, identified: Identified) -> Identified:
        for check in pipeline.OF_THE_CALLER:
            _obey(await check(identified, self._ports))
        return identified

    async def _answer(self, dialect: Dialect, x: Identified, answered: Answered, recorder: Recorder) -> Answer:
        await self._of_the_caller(x)
        if self._ports.journal.full():
            raise JournalFull
        answered.asked = asked = Asked(identified=x, call=dialect.decode(x.received.body, x.received.headers))
        for check in pipeline.OF_THE_CALL:
            await self._obey(await check(asked, self._ports), asked)
        admitted = Admitted(asked=asked, chain=await self._chain(asked))
        for reserve in pipeline.BEFORE_THE_CALL:
            _obey(await reserve(admitted, self._ports))
        started = self._ports.clock.monotonic()
        reply = await self._attempts.answer(admitted, answered)
        answered.provider_latency_ms = self.since(started)
        try:
            if reply.events is not None:
                await recorder.opened(answered)
                stream = _Stream(self, dialect, reply, answered, recorder)
                return Answer(status=200, headers=_headers(reply, answered), stream=stream)
            return await self._whole(reply, admitted, answered, recorder)
        except BaseException:
            await reply.close()
            raise

    async def _chain(self, asked: Asked) -> tuple[Candidate, ...]:
        """The candidates that nothing speaks against, healthy ones first. Raises the first refusal if none is left."""
        found = route.candidates(asked)
        if isinstance(found, Refusal):
            raise found
        left: list[Candidate] = []
        first: Refuse | None = None
        for candidate in found:
            refused = await self._refused(asked, candidate)
            if refused is None:
                left.append(candidate)
            first = first or refused
        if not left:
            assert first is not None
            raise first.error
        if len(left) > 1:
            tenant_id = asked.identified.policy.tenant_id
            # An unhealthy one is the last resort, not out: its health may be what this request finds out.
            left.sort(key=lambda candidate: not self._ports.switches.healthy(tenant_id, candidate.provider.id))
        return tuple(left)

    async def _refused(self, asked: Asked, candidate: Candidate) -> Refuse | None:
        for judge in pipeline.OF_A_CANDIDATE:
            verdict = await judge(asked, candidate, self._ports)
            if isinstance(verdict, Refuse):
                return verdict
        return None

    async def _whole(self, reply: Reply, admitted: Admitted, answered: Answered, recorder: Recorder) -> Answer:
        body = reply.body or b""
        for inspect in pipeline.OF_THE_ANSWER:
            _obey(await inspect(admitted, body, self._ports))
        answered.outcome, answered.status = "success", reply.status
        self.price(reply, answered)
        headers = _headers(reply, answered)
        if answered.cost_usd is not None:
            headers["X-Cost-USD"] = f"{answered.cost_usd:f}"
        await self.finish(answered, recorder)
        return Answer(status=reply.status, headers=headers, body=body)

    def price(self, reply: Reply, answered: Answered) -> None:
        answered.usage = reply.usage
        if answered.usage is not None and answered.chosen is not None:
            answered.cost_usd = cost(answered.usage, answered.chosen.model)

    async def _ended(self, dialect: Dialect, error: Refusal, answered: Answered, recorder: Recorder) -> Answer:
        """An answer that is an error, recorded as such."""
        answered.status, answered.error_code = error.status, error.code
        try:
            await self.finish(answered, recorder)
        except Refusal as unwritten:
            error = unwritten
        return _refusal(dialect, error, answered)

    async def finish(self, answered: Answered, recorder: Recorder) -> None:
        """Settles and records. Returns when the record survives this process."""
        for settle in pipeline.AFTERWARDS:
            await settle(answered, self._ports)
        written = recorder.finished(answered)
        if written is not None:
            await written

    def leave(self, answered: Answered, recorder: Recorder) -> None:
        """Settles and records for a client that no longer waits: the entry is queued now, and nobody is cancelled."""
        written = recorder.finished(answered)
        if written is None:
            return
        task = asyncio.create_task(self._settled(answered, written))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _settled(self, answered: Answered, written: Awaitable[None]) -> None:
        """The journal reports its own faults; here is nobody to tell."""
        for settle in pipeline.AFTERWARDS:
            await settle(answered, self._ports)
        with contextlib.suppress(Exception):
            await written

    async def _obey(self, verdict: Verdict, asked: Asked) -> None:
        """What a stage said about the call: may also change it, or have it wait for a person."""
        if isinstance(verdict, Rewrite):
            asked.call.body = verdict.body
        elif isinstance(verdict, Hold):
            denied = await self._ports.approvals.decision(verdict)
            if denied is not None:
                raise denied
        else:
            _obey(verdict)

    def since(self, started: float) -> float:
        return round((self._ports.clock.monotonic() - started) * 1000, 3)


class _Stream:
    """The events for the client. However it ends (read, broken, left, or never begun), the provider's call is closed
    and the request recorded, once. A class, because a generator that was never begun does nothing when it is closed.
    """

    def __init__(self, engine: Engine, dialect: Dialect, reply: Reply, answered: Answered, recorder: Recorder) -> None:
        self._engine = engine
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
        answered.time_to_first_token_ms = self._engine.since(started)
        try:
            async for block in reply.events:
                if reply.finished:
                    # A client that has its whole answer can rely on its record.
                    answered.outcome, answered.status = "success", 200
                    answered.provider_latency_ms = self._engine.since(started)
                    self._engine.price(reply, answered)
                    await self._engine.finish(answered, self._recorder)
                yield block
            answered.outcome, answered.status = "success", 200
        except ProviderFailed as failed:
            error = _broken(failed)
            answered.outcome, answered.status, answered.error_code = "error", error.status, failed.reason
            yield self._dialect.render_stream_error(error)
        except Refusal as error:
            # The journal would not take the record: the stream ends without its last event, and says why.
            answered.outcome, answered.status, answered.error_code = "error", error.status, error.code
            yield self._dialect.render_stream_error(error)
        finally:
            await self._end()

    async def _end(self) -> None:
        with contextlib.suppress(Exception):
            await self._reply.close()
        answered = self._answered
        if answered.provider_latency_ms is None or not self._reply.finished:
            answered.provider_latency_ms = self._engine.since(answered.identified.received.started)
        self._engine.price(self._reply, answered)
        self._engine.leave(answered, self._recorder)


def _obey(verdict: Verdict) -> None:
    if isinstance(verdict, Refuse):
        raise verdict.error


def _broken(failed: ProviderFailed) -> Refusal:
    """What a client is told whose stream broke off: the reason as a word, nothing of the provider's body."""
    if failed.reason == "timeout":
        return ProviderTimeout("The provider stopped sending; the answer is incomplete.")
    return AllProvidersFailed(f"The provider broke the stream off ({failed.reason}); the answer is incomplete.")


def _headers(reply: Reply, answered: Answered) -> dict[str, str]:
    assert answered.chosen is not None
    assert answered.asked is not None
    chosen = answered.chosen
    headers = {
        **reply.headers,
        "X-Gateway-Provider": chosen.provider.id,
        "X-Gateway-Model": chosen.model.model_id,
        "X-Gateway-Fallbacks": str(len({(attempt.provider, attempt.model) for attempt in answered.attempts})),
        "X-DLP-Action": answered.asked.dlp_action,
    }
    if answered.identified.rate is not None:
        headers.update(answered.identified.rate.headers())
    return headers


def _refusal(dialect: Dialect, error: Refusal, answered: Answered | None) -> Answer:
    headers = {"content-type": "application/json"}
    if answered is not None and answered.identified.rate is not None:
        headers.update(answered.identified.rate.headers())
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = error.body() if isinstance(error, InMaintenance) else dialect.render_error(error)
    return Answer(status=error.status, headers={**headers, **error.headers}, body=body)
