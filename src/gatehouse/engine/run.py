"""Walks a request through the pipeline, and makes sure that exactly one outcome comes of it.

`Engine.answer` never raises for anything a client, a provider or a revoked right can do: refusals come back as answers
in the client's dialect. Only cancellation and `ClientLeft` pass through, recorded, because nobody is left to answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import msgspec
import structlog

from gatehouse.engine import pipeline
from gatehouse.engine import scan as scanning
from gatehouse.engine.candidate import Candidate
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.dlp.labels import NONE_GIVEN
from gatehouse.engine.exchange import (
    Admitted,
    Answer,
    Answered,
    Asked,
    ClientLeft,
    Identified,
    ReadBody,
    Received,
)
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply
from gatehouse.engine.routing.attempts import Attempts
from gatehouse.engine.routing.chain import Chooser
from gatehouse.engine.settling import Settling
from gatehouse.engine.stages import authenticate, dlp_output, model_access, registry, response_cache, sampling
from gatehouse.engine.stages.maintenance import InMaintenance
from gatehouse.engine.stages.record import Recorder, scanned
from gatehouse.engine.streaming import AnswerStream, HeldStream
from gatehouse.engine.timing import HEADER as TIMING
from gatehouse.engine.timing import Timing, asked_for
from gatehouse.engine.verdict import ALLOW, AT_ONCE, Hold, Refuse, Rewrite, Said, Verdict
from gatehouse.foundation.counters import RateState
from gatehouse.foundation.errors import Internal, Refusal, Unavailable
from gatehouse.policy.records import ModelRecord

log = structlog.get_logger(__name__)

#: One of `pipeline.OF_THE_CALL`.
CallCheck: TypeAlias = Callable[[Asked, Ports], Said]
#: One of `pipeline.OF_THE_CALLER`.
CallerCheck: TypeAlias = Callable[[Identified, Ports], Said]


class JournalFull(Unavailable):
    code = "journal_full"
    message = "Records cannot be written now, so requests are refused. An operator has to look."


class Engine:
    """One worker's."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._attempts = Attempts(ports)
        self.circuits = self._attempts.circuits
        self.chooser = Chooser(self.circuits)
        self._checks: tuple[CallCheck, ...] = (*pipeline.OF_THE_CALL, self.chooser.choose)
        self._settling = Settling(ports)

    async def answer(
        self,
        x: Received,
        read: ReadBody | None = None,
        let_in: Callable[[], None] = lambda: None,
        counted: RateState | None = None,
        labels: Mapping[str, int] = NONE_GIVEN,
    ) -> Answer:
        """The answer to a model call: a body, or a stream that must be closed if it is not read to its end. `read` is
        asked for the request's body once the caller is known and has room; without it `x.body` is there already.
        `let_in` is told when maintenance cannot refuse it any more. `counted`: the state of the limit that the host has
        counted the request against; `labels`: see `Identified`."""
        assert x.dialect is not None
        dialect = DIALECTS[x.dialect]
        try:
            self._arrived(x)
            identified = await authenticate.caller(x, self._ports, "chat:write")
        except Refusal as error:
            # No caller, or none of an organization, whose record this could be: it is counted, not recorded.
            self._ports.meter.refused(error.code)
            return _refusal(dialect, error, None)
        except Exception:
            log.exception("engine.fault", request_id=x.request_id)
            return _refusal(dialect, Internal(), None)
        identified.rate, identified.labels = counted, labels
        answered = Answered(identified=identified)
        if self._ports.traces is not None:
            answered.trace = self._ports.traces.begin(x)
        if asked_for(identified):
            answered.timing = Timing(self._ports.clock.monotonic, x.started)
            answered.timing.part("auth")
        recorder = Recorder(self._ports)
        work = self._answer(dialect, identified, read, let_in, answered=answered, recorder=recorder)
        return await self._recorded(work, dialect, answered, recorder)

    async def _recorded(
        self, work: Awaitable[Answer], dialect: Dialect, answered: Answered, recorder: Recorder
    ) -> Answer:
        """What the work gives, or the answer that says why it gives nothing; recorded either way."""
        try:
            return await work
        except Refusal as error:
            answered.outcome = "error" if error.status >= 500 and answered.attempts else "refused"
            return await self._ended(dialect, error, answered, recorder)
        except (asyncio.CancelledError, ClientLeft):
            answered.outcome, answered.status = "cancelled", 499
            self._settling.leave(answered, recorder)
            raise
        except Exception:
            log.exception("engine.fault", request_id=answered.identified.received.request_id)
            return await self._ended(dialect, Internal(), answered, recorder)

    async def identify(self, x: Received, scope: str) -> Identified:
        """For gateway paths that call no model, such as the list of models. Raises `Refusal`."""
        self._arrived(x)
        identified = await authenticate.caller(x, self._ports, scope)
        try:
            await self._of_the_caller(identified, pipeline.OF_THE_CALLER)
        except Refusal as error:
            if identified.rate is not None:
                error.headers = {**identified.rate.headers(), **error.headers}
            raise
        return identified

    async def scan(self, identified: Identified, read: ReadBody) -> Answer:
        """What would be done about a text (`POST /v1/scan`). What was found is on record when the answer is given.
        Raises `Refusal`."""
        if self._ports.journal.full():
            raise JournalFull
        request = scanning.decode(await read())
        told, inspection = await scanning.scan(identified, request, self._ports)
        if events := inspection.events():
            await scanned(identified, request.model, events, self._ports)
        headers = {"content-type": "application/json", "X-DLP-Action": told.action}
        if identified.rate is not None:
            headers.update(identified.rate.headers())
        return Answer(status=200, headers=headers, body=msgspec.json.encode(told))

    async def usable_models(self, x: Identified) -> list[ModelRecord]:
        """The active entries of the catalog that nothing refuses to this caller, kill-switched ones included: those
        are only out for a while."""
        asked = Asked(identified=x, call=ModelCall(dialect="", model="", stream=False, body={}))
        usable = []
        for model in x.policy.models.values():
            provider = x.policy.providers.get(model.provider)
            if model.is_active and provider is not None and provider.enabled:
                candidate = Candidate(provider, model)
                for judge in (model_access.judge, registry.judge):
                    if isinstance(judge(asked, candidate, self._ports), Refuse):
                        break
                else:
                    usable.append(model)
        return usable

    def _arrived(self, x: Received) -> None:
        for check in pipeline.ON_ARRIVAL:
            verdict = check(x, self._ports)
            if verdict is not ALLOW:
                _obey(verdict)

    async def _of_the_caller(self, x: Identified, checks: Iterable[CallerCheck]) -> None:
        for check in checks:
            said = check(x, self._ports)
            if said is not ALLOW:
                verdict = said if isinstance(said, AT_ONCE) else await said
                if verdict is not ALLOW:
                    _obey(verdict)

    async def _answer(
        self,
        dialect: Dialect,
        x: Identified,
        read: ReadBody | None,
        let_in: Callable[[], None],
        *,
        answered: Answered,
        recorder: Recorder,
    ) -> Answer:
        received, timing = x.received, answered.timing
        await self._of_the_caller(x, pipeline.OF_A_MODELS_CALLER)
        if self._ports.journal.full():
            raise JournalFull
        if timing is not None:
            timing.part("limits")
        if read is not None:
            received.body = await read()
        # A body may take its time, and only now has all of the request arrived.
        self._arrived(received)
        # Without a turn of the loop since maintenance was looked at.
        let_in()
        answered.asked = asked = Asked(identified=x, call=dialect.decode(received.body, received.headers))
        if timing is not None:
            timing.part("body")
        return await self._proceed(dialect, asked, iter(self._checks), answered, recorder)

    async def _proceed(
        self, dialect: Dialect, asked: Asked, checks: Iterator[CallCheck], answered: Answered, recorder: Recorder
    ) -> Answer:
        """What is left of the checks, and the call."""
        ports, timing = self._ports, answered.timing
        for check in checks:
            said = check(asked, ports)
            if said is ALLOW and timing is None:
                continue
            verdict = said if isinstance(said, AT_ONCE) else await said
            if isinstance(verdict, Hold) and asked.call.stream and not answered.held:
                proceed = partial(self._proceed, dialect, asked, checks, answered, recorder)
                return await self._held(self._approved(verdict, asked, proceed), dialect, answered, recorder)
            if verdict is not ALLOW:
                await self._obey(verdict, asked)
            if timing is not None:
                timing.part("route" if check is self._checks[-1] else pipeline.PARTS[check])
        admitted = Admitted(asked=asked, chain=asked.chain)
        for prepare in pipeline.BEFORE_THE_CALL:
            said = prepare(admitted, ports)
            if said is not ALLOW:
                _obey(said if isinstance(said, AT_ONCE) else await said)
        return await self._called(dialect, admitted, answered, recorder)

    async def _held(self, work: Awaitable[Answer], dialect: Dialect, answered: Answered, recorder: Recorder) -> Answer:
        """A stream hears at once that it has to wait; everything else goes on from there."""
        answered.held = True
        await recorder.opened(answered)
        held = HeldStream(
            self._recorded(work, dialect, answered, recorder), dialect, self._settling, answered, recorder
        )
        return Answer(status=200, headers=_event_headers(answered), stream=held, answered=answered)

    async def _called(self, dialect: Dialect, x: Admitted, answered: Answered, recorder: Recorder) -> Answer:
        """The call, of which every check has let it come."""
        asked, timing = x.asked, answered.timing
        if timing is not None:
            timing.part("budget")
        # What was answered before, or a provider's answer.
        reply = None if asked.cached is None else response_cache.again(asked)
        if reply is not None:
            answered.chosen = x.chain[0]
        else:
            started = self._ports.clock.monotonic()
            try:
                reply = await self._attempts.answer(x, answered)
            except Refusal as error:
                if error.status >= 500:
                    # In the gateway's own words.
                    raise
                raise await dlp_output.of_error(asked, error, self._ports) from None
            answered.provider_latency_ms = self._settling.since(started)
            if asked.cached is not None:
                response_cache.watch(answered, reply)
        sampling.watch(asked, reply)
        if timing is not None:
            timing.part("provider")
        try:
            if reply.events is not None:
                await recorder.opened(answered)
                guard = dlp_output.guard(asked, dialect, self._ports)
                stream = AnswerStream(
                    self._settling, dialect, reply, answered, recorder, guard=guard, ports=self._ports
                )
                return Answer(status=200, headers=_headers(reply, answered), stream=stream, answered=answered)
            return await self._whole(reply, asked, answered, recorder)
        except BaseException:
            await reply.close()
            raise

    async def _approved(self, hold: Hold, asked: Asked, proceed: Callable[[], Awaitable[Answer]]) -> Answer:
        await self._obey(hold, asked)
        return await proceed()

    async def _whole(self, reply: Reply, asked: Asked, answered: Answered, recorder: Recorder) -> Answer:
        body = reply.body or b""
        # What is held back after all was made, and has to be paid.
        self._settling.price(reply, answered)
        for inspect in pipeline.OF_THE_ANSWER:
            said = inspect(asked, body, self._ports)
            if said is not ALLOW:
                verdict = said if isinstance(said, AT_ONCE) else await said
                if isinstance(verdict, Rewrite):
                    body = msgspec.json.encode(verdict.body)
                _obey(verdict)
        answered.outcome, answered.status = "success", reply.status
        if answered.timing is not None:
            answered.timing.part("dlp_out")
        headers = _headers(reply, answered)
        if answered.cost_told is not None:
            headers["X-Cost-USD"] = answered.cost_told
        await self._settling.finish(answered, recorder)
        if answered.timing is not None:
            answered.timing.part("record")
            headers[TIMING] = answered.timing.header()
        return Answer(status=reply.status, headers=headers, body=body, answered=answered)

    async def _ended(self, dialect: Dialect, error: Refusal, answered: Answered, recorder: Recorder) -> Answer:
        """An answer that is an error, recorded as such."""
        answered.status, answered.error_code = error.status, error.code
        try:
            await self._settling.finish(answered, recorder)
        except Refusal as unwritten:
            error = unwritten
        return _refusal(dialect, error, answered)

    async def _obey(self, verdict: Verdict, asked: Asked) -> None:
        """What a stage said about the call: may also change it, or have it wait for a person."""
        if isinstance(verdict, Rewrite):
            asked.call.body = verdict.body
        elif isinstance(verdict, Hold):
            if not await dlp_output.approved(asked, verdict, self._ports):
                raise verdict.denied
        else:
            _obey(verdict)


def _obey(verdict: Verdict) -> None:
    if isinstance(verdict, Refuse):
        raise verdict.error


def _event_headers(answered: Answered) -> dict[str, str]:
    """Of a stream whose provider is not known yet."""
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    if answered.identified.rate is not None:
        headers.update(answered.identified.rate.headers())
    return headers


def _headers(reply: Reply, answered: Answered) -> dict[str, str]:
    assert answered.chosen is not None
    assert answered.asked is not None
    identified, asked, chosen = answered.identified, answered.asked, answered.chosen
    headers = {
        **reply.headers,
        "X-Gateway-Provider": chosen.provider.id,
        "X-Gateway-Model": chosen.model.model_id,
        "X-Gateway-Fallbacks": str(answered.fallbacks),
        # Where nothing looked, nothing was held back either; the record tells the two apart.
        "X-DLP-Action": asked.inspection.action if asked.inspection else "ALLOW",
    }
    if answered.cache is not None:
        headers["X-Gateway-Cache"] = answered.cache
    policy = identified.policy
    if policy.registry_enforcement != "off" and (objection := registry.objection(policy, chosen)) is not None:
        headers["X-Gateway-Warning"] = objection.code
    if identified.rate is not None:
        headers.update(identified.rate.headers())
    if asked.reserved is not None:
        headers.update(asked.reserved.headers())
    if answered.timing is not None:
        headers[TIMING] = answered.timing.header()
    return headers


def _refusal(dialect: Dialect, error: Refusal, answered: Answered | None) -> Answer:
    headers = {"content-type": "application/json"}
    if answered is not None and answered.identified.rate is not None:
        headers.update(answered.identified.rate.headers())
    if answered is not None and answered.asked is not None and answered.asked.reserved is not None:
        headers.update(answered.asked.reserved.headers())
    if answered is not None and answered.timing is not None:
        answered.timing.part("refusal")
        headers[TIMING] = answered.timing.header()
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = error.body() if isinstance(error, InMaintenance) else dialect.render_error(error)
    return Answer(status=error.status, headers={**headers, **error.headers}, body=body, refusal=error)
