"""Gets an answer from a chain of candidates, with retries, fallbacks and circuit breakers (docs/cost-routing.md)."""

import asyncio
import math
import random
from collections.abc import Mapping
from typing import Final

from gatehouse.engine.conversation.dialects.token_counts import COUNTING
from gatehouse.engine.conversation.errors import UnknownUpstream
from gatehouse.engine.exchange import Admitted, Attempt, Exchange
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply, call_provider, count_tokens
from gatehouse.engine.providers.failure import RATE_LIMITED, ProviderFailed, sentence
from gatehouse.engine.records import tracing
from gatehouse.engine.routing.circuits import CircuitKey, Circuits
from gatehouse.engine.routing.cooldowns import Cooldowns
from gatehouse.engine.stages.candidates.kill_switch import ProviderUnavailable
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import BadGateway, GatewayTimeout, Refusal, Unauthenticated, Unavailable
from gatehouse.foundation.outbound import NoConnectionFree, OutboundTimeout
from gatehouse.policy.records import Candidate

#: Delay before the first retry. The delay doubles with each further retry, and up to half of it is random.
_FIRST_RETRY_DELAY_SECONDS: Final = 0.05
#: Number of times that an attempt synchronizes the switches before it fails.
_MAX_SYNCHRONIZATIONS: Final = 5
#: Reason of an attempt that was not made because the circuit was open.
_CIRCUIT_OPEN: Final = "circuit_open"


class AllProvidersFailed(BadGateway):
    code = "all_providers_failed"
    message = "No provider could answer."


class Overloaded(Unavailable):
    """This worker has the maximum number of calls in progress to each provider of the chain: 503."""

    code = "gateway_overloaded"
    message = "The gateway has too many calls to providers in progress. Try again later."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class ProviderTimeout(GatewayTimeout):
    code = "provider_timeout"


class CredentialRevoked(Unauthenticated):
    code = "credential_revoked"
    message = "The credential was revoked while the request waited."


class OutOfTouch(Unavailable):
    """The local state of the switches is too old to send a call, because this process was suspended or is overloaded:
    503."""

    code = "switch_state_unknown"
    message = "This worker's state of the kill switches is out of date. Try again."


class Attempts:
    """The attempts of one worker. All requests share its circuit breakers."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.circuits = Circuits(ports.clock, ports.circuit_failures, ports.circuit_seconds)
        #: those of token counts: providers count by another operation with a rate limit of its own, and an estimate
        #: calls no provider, so that a count tells nothing about the answers of a model
        self._count_circuits = Circuits(ports.clock, ports.circuit_failures, ports.circuit_seconds)
        self.cooldowns = Cooldowns(ports.clock)
        self._deadlines = Deadlines(ports.request_deadline_seconds)

    async def answer(self, x: Admitted, answered: Exchange) -> Reply:
        """Return a successful reply, of which nothing has been sent to the client yet. Records every failed attempt and
        the chosen candidate in `answered`. Raises an error that the client caused, `ProviderUnavailable`, or an error
        that reports the failure of the whole chain.

        One deadline covers retries, delays, waits for a connection, whole bodies and a stream's first event. It does
        not limit a stream that has begun."""
        candidate = x.chain[0]
        try:
            with self._deadlines.one() as deadline:
                skipped: list[Candidate] = []
                for candidate in x.chain:
                    reply = await self._attempt_with_retries(candidate, x, answered, skipped)
                    if reply is not None:
                        return reply
                if skipped:
                    # No other candidate is left, and an attempt is better than a refusal.
                    candidate = skipped[0]
                    reply = await self._last_resort(candidate, x, answered)
                    if reply is not None:
                        return reply
        except TimeoutError:
            if not deadline.expired:
                raise
            answered.attempts.append(_new_attempt(candidate, None, "deadline"))
        raise _chain_failed(answered.attempts)

    async def _attempt_with_retries(
        self, candidate: Candidate, x: Admitted, answered: Exchange, skipped: list[Candidate]
    ) -> Reply | None:
        key, circuits = _key(candidate, x), self._count_circuits if _counts(x) else self.circuits
        for retry in range(candidate.provider.config.max_retries + 1):
            if retry:
                delay = _FIRST_RETRY_DELAY_SECONDS * 2 ** (retry - 1)
                await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
            if not circuits.may_try(key):
                answered.attempts.append(_new_attempt(candidate, None, _CIRCUIT_OPEN))
                if not retry:
                    skipped.append(candidate)
                return None
            reply, may_retry = await self._attempt(candidate, x, answered)
            if reply is not None or not may_retry:
                return reply
        return None

    async def _last_resort(self, candidate: Candidate, x: Admitted, answered: Exchange) -> Reply | None:
        """Make one attempt even though the circuit is open."""
        answered.attempts.remove(_new_attempt(candidate, None, _CIRCUIT_OPEN))
        reply, _ = await self._attempt(candidate, x, answered)
        return reply

    async def _attempt(self, candidate: Candidate, x: Admitted, answered: Exchange) -> tuple[Reply | None, bool]:
        """Return a successful reply, or None together with whether the same candidate may be retried. Raises an error
        that the client caused."""
        try:
            reply = await self._call_with_circuits(candidate, x, answered)
        except ProviderFailed as failed:
            if failed.client_error is not None:
                answered.chosen = candidate
                raise failed.client_error from None
            answered.attempts.append(_new_attempt(candidate, failed.status, failed.reason, failed.retry_after))
            return None, failed.retryable
        except ProviderUnavailable:
            answered.attempts.append(_new_attempt(candidate, None, "kill_switched"))
            return None, False
        answered.chosen = candidate
        return reply, False

    async def _call_with_circuits(self, candidate: Candidate, x: Admitted, answered: Exchange) -> Reply:
        """Make one call, and report the result to the circuits."""
        key, counts = _key(candidate, x), _counts(x)
        circuits = self._count_circuits if counts else self.circuits
        started = self._ports.clock.monotonic()
        unanswered = len(answered.unanswered)
        try:
            if answered.trace is None:
                reply = await self._call(candidate, x, answered)
            else:
                reply = await self._traced_call(answered.trace, candidate, x, answered, started)
        except ProviderFailed as failed:
            sent = len(answered.unanswered) > unanswered
            if failed.reason != OutboundTimeout.reason:
                # The provider has answered with an error, so the call is not unanswered.
                del answered.unanswered[unanswered:]
            if failed.reason == RATE_LIMITED and not counts:
                self.cooldowns.begin(key, failed.retry_after)
            if failed.retryable:
                (circuits.failed if sent else circuits.not_connected)(key)
            else:
                (circuits.released if failed.status is None else circuits.refused)(key)
            raise
        except BaseException:
            circuits.released(key)
            raise
        circuits.succeeded(key)
        if counts:
            return reply
        if reply.exhausted_seconds is not None:
            self.cooldowns.begin(key, reply.exhausted_seconds)
        latency_ms = (self._ports.clock.monotonic() - started) * 1000
        self._ports.latencies.answered(candidate.model.id, latency_ms, stream=x.call_request.call.stream)
        return reply

    async def _traced_call(
        self, trace: tracing.Trace, candidate: Candidate, x: Admitted, answered: Exchange, started: float
    ) -> Reply:
        """Make one call, and record it in the request's trace."""
        call = trace.call(candidate.provider, candidate.model, started)
        # A cancellation leaves this value unchanged; every other end replaces it.
        call.failed = "cancelled"
        try:
            reply = await self._call(candidate, x, answered, trace.headers(call))
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

    async def _call(
        self, candidate: Candidate, x: Admitted, answered: Exchange, headers: Mapping[str, str] = tracing.NO_HEADERS
    ) -> Reply:
        ports, identified, provider = self._ports, x.call_request.identified, candidate.provider
        switches, credentials, tenant_id = ports.switches, ports.credentials, identified.policy.tenant_id

        unanswered = len(answered.unanswered)
        ask = count_tokens if _counts(x) else call_provider

        def still_allowed() -> None:
            """Check that the permission was not revoked while the request waited. Raises `Refusal`."""
            if not switches.up_to_date():
                raise OutOfTouch
            if switches.switched_off(tenant_id, candidate):
                raise ProviderUnavailable
            if not credentials.still_good(identified.caller):
                raise CredentialRevoked

        def gate() -> None:
            """Check the permission again right before the first byte. It is called for each connection that is
            tried."""
            still_allowed()
            answered.unanswered[unanswered:] = [candidate]

        for synchronizations in range(_MAX_SYNCHRONIZATIONS):
            await switches.in_touch()
            try:
                if synchronizations or answered.attempts:
                    # If the permission was revoked in the meantime, the attempt ends without a connection.
                    still_allowed()
                elif not switches.up_to_date():
                    continue
                return await ask(
                    x.call_request.call,
                    candidate,
                    secret=ports.secrets.open(tenant_id, provider.id, provider.sealed_credentials),
                    outbound=ports.outbound,
                    max_response_bytes=ports.max_response_bytes,
                    gate=gate,
                    headers=headers,
                )
            except OutOfTouch:
                # Nothing was sent, because the gate runs before the first byte.
                continue
        raise OutOfTouch


def _counts(x: Admitted) -> bool:
    """Return whether the call only counts tokens."""
    return x.call_request.call.dialect in COUNTING


def _key(candidate: Candidate, x: Admitted) -> CircuitKey:
    return CircuitKey(x.call_request.identified.policy.tenant_id, candidate.provider.id, candidate.model.model_id)


def _new_attempt(candidate: Candidate, status: int | None, reason: str, retry_after: float | None = None) -> Attempt:
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
    # The shortest delay is enough, because the client needs only one available provider.
    delays = [attempt.retry_after for attempt in attempts if attempt.retry_after is not None]
    headers = {"Retry-After": str(max(math.ceil(min(delays)), 1))} if delays else None
    listed = [
        {"provider": attempt.provider, "model": attempt.model, "status": attempt.status, "reason": attempt.reason}
        for attempt in attempts
    ]
    if reasons == {"model_not_found"}:
        return UnknownUpstream(f"No provider has the model. {failed}", attempts=listed)
    if "deadline" in reasons or reasons == {"timeout"}:
        return ProviderTimeout(f"No provider answered in time. {failed}", headers=headers, attempts=listed)
    return AllProvidersFailed(f"No provider could answer. {failed}", headers=headers, attempts=listed)
