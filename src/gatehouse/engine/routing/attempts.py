"""Gets an answer from a chain of candidates: retries, fallbacks, circuits (decisions 7, Fallback chains)."""

import asyncio
import math
import random
from collections.abc import Mapping
from typing import Final

from gatehouse.engine import tracing
from gatehouse.engine.candidate import Candidate
from gatehouse.engine.conversation.errors import UnknownUpstream
from gatehouse.engine.exchange import Admitted, Answered, Attempt
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply, call_provider
from gatehouse.engine.providers.failure import ProviderFailed, sentence
from gatehouse.engine.routing.circuits import Circuits, Key
from gatehouse.engine.stages.kill_switch import ProviderUnavailable
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import BadGateway, GatewayTimeout, Refusal, Unauthenticated, Unavailable
from gatehouse.foundation.outbound import NoConnectionFree, OutboundTimeout

#: seconds before the first retry; doubled for each further one, and half of it left to chance
_PAUSE: Final = 0.05
#: how often an attempt catches up with the switches anew before it gives up
_CATCH_UPS: Final = 5
#: the reason of an attempt that was not made
_CIRCUIT_OPEN: Final = "circuit_open"


class AllProvidersFailed(BadGateway):
    code = "all_providers_failed"
    message = "No provider could answer."


class Overloaded(Unavailable):
    """This worker has as many calls to each provider of the chain in progress as it may."""

    code = "gateway_overloaded"
    message = "The gateway has too many calls to providers in progress. Try again."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class ProviderTimeout(GatewayTimeout):
    code = "provider_timeout"


class CredentialRevoked(Unauthenticated):
    code = "credential_revoked"
    message = "The credential was revoked while the request waited."


class OutOfTouch(Unavailable):
    """What is known here is too old to send by: this process was stopped, or is far too busy."""

    code = "switch_state_unknown"
    message = "This worker could not catch up with what was switched off. Try again."


class Attempts:
    """One worker's. What it learns about failing providers serves all requests."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.circuits = Circuits(ports.clock, ports.circuit_failures, ports.circuit_seconds)
        self._deadlines = Deadlines(ports.request_deadline_seconds)

    async def answer(self, x: Admitted, answered: Answered) -> Reply:
        """A good reply, of which nothing has been sent to the client yet. Notes in `answered` every failed attempt
        and who was chosen. Raises the client's own error, `ProviderUnavailable`, or that the whole chain failed.

        The deadline is one for all of it: retries, pauses, waits for a connection, whole bodies, a stream's first
        event. A stream that has begun is not bounded by it."""
        candidate = x.chain[0]
        try:
            with self._deadlines.one() as deadline:
                skipped: list[Candidate] = []
                for candidate in x.chain:
                    reply = await self._from(candidate, x, answered, skipped)
                    if reply is not None:
                        return reply
                if skipped:
                    # Nobody else is left: to be tried is better than to be refused.
                    candidate = skipped[0]
                    reply = await self._last_resort(candidate, x, answered)
                    if reply is not None:
                        return reply
        except TimeoutError:
            if not deadline.expired:
                raise
            answered.attempts.append(_attempt(candidate, None, "deadline"))
        raise _chain_failed(answered.attempts)

    async def _from(
        self, candidate: Candidate, x: Admitted, answered: Answered, skipped: list[Candidate]
    ) -> Reply | None:
        key = _key(candidate, x)
        for tries in range(candidate.provider.config.max_retries + 1):
            if tries:
                await asyncio.sleep(_PAUSE * 2 ** (tries - 1) * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
            if not self.circuits.may_try(key):
                answered.attempts.append(_attempt(candidate, None, _CIRCUIT_OPEN))
                if not tries:
                    skipped.append(candidate)
                return None
            reply, again = await self._tried(candidate, x, answered)
            if reply is not None or not again:
                return reply
        return None

    async def _last_resort(self, candidate: Candidate, x: Admitted, answered: Answered) -> Reply | None:
        """One try, whatever its circuit says."""
        answered.attempts.remove(_attempt(candidate, None, _CIRCUIT_OPEN))
        reply, _ = await self._tried(candidate, x, answered)
        return reply

    async def _tried(self, candidate: Candidate, x: Admitted, answered: Answered) -> tuple[Reply | None, bool]:
        """A good reply, or whether the same candidate may be tried again. Raises the client's own error."""
        try:
            reply = await self._counted(candidate, x, answered)
        except ProviderFailed as failed:
            if failed.client_error is not None:
                answered.chosen = candidate
                raise failed.client_error from None
            answered.attempts.append(_attempt(candidate, failed.status, failed.reason, failed.retry_after))
            return None, failed.retryable
        except ProviderUnavailable:
            answered.attempts.append(_attempt(candidate, None, "kill_switched"))
            return None, False
        answered.chosen = candidate
        return reply, False

    async def _counted(self, candidate: Candidate, x: Admitted, answered: Answered) -> Reply:
        """One call, of whose end the circuits hear."""
        key, circuits = _key(candidate, x), self.circuits
        began = self._ports.clock.monotonic()
        unanswered = len(answered.unanswered)
        try:
            if answered.trace is None:
                reply = await self._once(candidate, x, answered)
            else:
                reply = await self._traced(answered.trace, candidate, x, answered, began)
        except ProviderFailed as failed:
            sent = len(answered.unanswered) > unanswered
            if failed.reason != OutboundTimeout.reason:
                # It has answered, if only that it will not.
                del answered.unanswered[unanswered:]
            if failed.retryable:
                (circuits.failed if sent else circuits.not_connected)(key)
            else:
                (circuits.released if failed.status is None else circuits.refused)(key)
            raise
        except BaseException:
            circuits.released(key)
            raise
        circuits.succeeded(key)
        took = (self._ports.clock.monotonic() - began) * 1000
        self._ports.latencies.answered(candidate.model.id, took, stream=x.asked.call.stream)
        return reply

    async def _traced(
        self, trace: tracing.Trace, candidate: Candidate, x: Admitted, answered: Answered, began: float
    ) -> Reply:
        """One try, noted in the request's trace."""
        call = trace.call(candidate.provider, candidate.model, began)
        # What ends otherwise, ends by cancellation or by what was switched off meanwhile.
        call.failed = "cancelled"
        try:
            reply = await self._once(candidate, x, answered, trace.headers(call))
        except ProviderFailed as failed:
            call.status, call.failed = failed.status, failed.reason
            raise
        except Refusal as refused:
            call.failed = refused.code
            raise
        else:
            call.status, call.failed = reply.status, None
        finally:
            call.ended = self._ports.clock.monotonic()
        if reply.events is not None:
            call.ended = None
        return reply

    async def _once(
        self, candidate: Candidate, x: Admitted, answered: Answered, headers: Mapping[str, str] = tracing.NO_HEADERS
    ) -> Reply:
        ports, identified, provider = self._ports, x.asked.identified, candidate.provider
        switches, credentials, tenant_id = ports.switches, ports.credentials, identified.policy.tenant_id

        unanswered = len(answered.unanswered)

        def still_allowed() -> None:
            """Whatever the request waited for, nothing was taken back since."""
            if not switches.up_to_date():
                raise OutOfTouch
            if switches.switched_off(tenant_id, candidate):
                raise ProviderUnavailable
            if not credentials.still_good(identified.caller):
                raise CredentialRevoked

        def gate() -> None:
            """Is called right before the first byte, once for each connection that is tried."""
            still_allowed()
            answered.unanswered[unanswered:] = [candidate]

        for caught_up in range(_CATCH_UPS):
            await switches.in_touch()
            try:
                if caught_up or answered.attempts:
                    # What was learnt meanwhile may end it without a connection.
                    still_allowed()
                elif not switches.up_to_date():
                    continue
                return await call_provider(
                    x.asked.call,
                    candidate,
                    secret=ports.secrets.open(tenant_id, provider.id, provider.sealed_credentials),
                    outbound=ports.outbound,
                    max_response_bytes=ports.max_response_bytes,
                    gate=gate,
                    headers=headers,
                )
            except OutOfTouch:
                # Nothing was sent: the gate is asked before the first byte.
                continue
        raise OutOfTouch


def _key(candidate: Candidate, x: Admitted) -> Key:
    return Key(x.asked.identified.policy.tenant_id, candidate.provider.id, candidate.model.model_id)


def _attempt(candidate: Candidate, status: int | None, reason: str, retry_after: float | None = None) -> Attempt:
    return Attempt(
        provider=candidate.provider.id,
        model=candidate.model.model_id,
        status=status,
        reason=reason,
        retry_after=retry_after,
    )


def _chain_failed(attempts: list[Attempt]) -> Refusal:
    reasons = {attempt.reason for attempt in attempts}
    if reasons == {"kill_switched"}:
        return ProviderUnavailable()
    if reasons == {NoConnectionFree.reason}:
        return Overloaded()
    last = attempts[-1]
    failed = f"Last attempt: {last.provider}/{last.model}, {last.reason}. {sentence(last.reason, last.status)}"
    # Whoever of them is back first can answer.
    waits = [attempt.retry_after for attempt in attempts if attempt.retry_after is not None]
    headers = {"Retry-After": str(max(math.ceil(min(waits)), 1))} if waits else None
    told = [
        {"provider": attempt.provider, "model": attempt.model, "status": attempt.status, "reason": attempt.reason}
        for attempt in attempts
    ]
    if reasons == {"model_not_found"}:
        return UnknownUpstream(f"No provider has the model. {failed}", attempts=told)
    if "deadline" in reasons or reasons == {"timeout"}:
        return ProviderTimeout(f"No provider answered in time. {failed}", headers=headers, attempts=told)
    return AllProvidersFailed(f"No provider could answer. {failed}", headers=headers, attempts=told)
