"""Gets an answer from a chain of candidates, with retries, fallbacks and circuit breakers (docs/cost-routing.md)."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.dialects import TRAITS
from gatehouse.engine.conversation.dialects.token_counts import COUNTING
from gatehouse.engine.exchange import Admitted, Exchange
from gatehouse.engine.money.estimate import routing_needs
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply, call_provider, complete_text, count_tokens, kept_response
from gatehouse.engine.providers.failure import (
    CIRCUIT_OPEN,
    CREDENTIAL_REASONS,
    DEPLOYMENT_FULL,
    KILL_SWITCHED,
    NOT_CONFIGURED,
    NOT_CONVERTIBLE,
    RATE_LIMITED,
    ProviderFailed,
)
from gatehouse.engine.records import tracing
from gatehouse.engine.routing.circuits import CircuitKey, Circuits
from gatehouse.engine.routing.cooldowns import Cooldowns
from gatehouse.engine.routing.credentials import Credential, Credentials
from gatehouse.engine.routing.deployments.load import BUSY_SECONDS, DeploymentLoads, Place
from gatehouse.engine.routing.failed_attempts import chain_failed, new_attempt
from gatehouse.engine.stages.candidates.kill_switch import ProviderUnavailable
from gatehouse.engine.stages.candidates.sending import OutOfTouch
from gatehouse.engine.timing import milliseconds
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound import OutboundTimeout
from gatehouse.policy.catalog import Candidate

#: Delay before the first retry. The delay doubles with each further retry, and up to half of it is random.
_FIRST_RETRY_DELAY_SECONDS: Final = 0.05
#: Maximum number of times that an attempt synchronizes the switches.
_MAX_SYNCHRONIZATIONS: Final = 5

#: What follows a failed attempt: a retry, another credential of the same provider, or the next candidate.
_Next: TypeAlias = Literal["retry", "credential", "candidate"]

#: the functions that make the calls of some dialects; all other calls are made by `call_provider`
_CALLS: Final = {
    **dict.fromkeys(COUNTING, count_tokens),
    "openai_completions": complete_text,
    "openai_kept_response": kept_response,
}


class _Target(msgspec.Struct, frozen=True):
    """A candidate with its credentials, in the order in which they are tried, and its circuits. `is_free`: the
    operation is free, because no model generates an answer."""

    candidate: Candidate
    credentials: Sequence[Credential]
    key: CircuitKey
    circuits: Circuits
    is_free: bool


class _Progress(msgspec.Struct):
    """The attempts of one request so far."""

    #: candidates that were not tried because their circuits are open
    skipped: list[Candidate] = []
    #: the first candidate whose dialect cannot express the call, and the error that says why
    not_convertible: tuple[Candidate, Refusal] | None = None
    #: monotonic time at which the last attempt began
    attempt_started: float = 0.0


class Attempts:
    """The attempts of one worker. All requests share its circuit breakers."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.circuits = Circuits(ports.clock, ports.circuit_failures, ports.circuit_seconds)
        #: circuits for free operations, whose results say nothing about the answers of the model
        self._free_circuits = Circuits(ports.clock, ports.circuit_failures, ports.circuit_seconds)
        self.cooldowns = Cooldowns(ports.clock, ports.shared_cooldowns, "model")
        self.credentials = Credentials(ports.clock, ports.secrets, ports.shared_cooldowns)
        self.loads = DeploymentLoads(ports, random.random)
        self._deadlines = Deadlines(ports.request_deadline_seconds)

    async def answer(self, x: Admitted, exchange: Exchange) -> Reply:
        """Return a successful reply, of which nothing has been sent to the client yet. Records every failed attempt and
        the chosen candidate in `answered`. Raises an error that the client caused, `ProviderUnavailable`, or an error
        that reports the failure of the whole chain.

        One deadline covers retries, delays, waits for a connection, whole bodies and a stream's first event. It does
        not limit a stream that has begun."""
        candidate, progress = x.chain[0], _Progress()
        try:
            with self._deadlines.one() as deadline:
                for candidate in x.chain:
                    reply = await self._attempt_with_retries(candidate, x, exchange, progress)
                    if reply is not None:
                        return reply
                if progress.skipped:
                    # No other candidate is left, and an attempt is better than a refusal.
                    candidate = progress.skipped[0]
                    reply = await self._last_resort(candidate, x, exchange, progress)
                    if reply is not None:
                        return reply
        except TimeoutError:
            if not deadline.expired:
                raise
            exchange.attempts.append(new_attempt(candidate, None, "deadline", duration_ms=self._duration_ms(progress)))
        if progress.not_convertible is not None and all(
            attempt.reason == NOT_CONVERTIBLE for attempt in exchange.attempts
        ):
            exchange.chosen, refusal = progress.not_convertible
            try:
                raise refusal
            finally:
                # Otherwise the error's traceback would refer to this frame, and the frame to the error.
                del refusal, progress
        raise chain_failed(exchange.attempts)

    async def _attempt_with_retries(
        self, candidate: Candidate, x: Admitted, exchange: Exchange, progress: _Progress
    ) -> Reply | None:
        if x.routed.deployments is not None and not self._enters(candidate, x, exchange):
            return None
        target = self._target(candidate, x, exchange)
        key, circuits, credentials = target.key, target.circuits, target.credentials
        used = retry = 0
        while used < len(credentials):
            if not circuits.may_try(key):
                exchange.attempts.append(new_attempt(candidate, None, CIRCUIT_OPEN))
                if not retry and not used:
                    progress.skipped.append(candidate)
                return None
            if exchange.place is not None and not await self._admitted(target, x, exchange):
                return None
            reply, following = await self._attempt(target, credentials[used], x, exchange, progress)
            if reply is not None:
                return reply
            if following == "credential":
                used += 1
                continue
            if following == "candidate" or retry >= candidate.provider.config.max_retries:
                return None
            delay = _FIRST_RETRY_DELAY_SECONDS * 2**retry
            retry += 1
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
        return None

    def _target(self, candidate: Candidate, x: Admitted, exchange: Exchange) -> _Target:
        """Return the target for a candidate. If it has no credentials, record an attempt that was not made."""
        is_free = TRAITS[x.call_request.call.dialect].is_free
        tenant_id = x.call_request.identified.policy.tenant_id
        credentials = self.credentials.in_turn(tenant_id, candidate)
        if not credentials:
            exchange.attempts.append(new_attempt(candidate, None, NOT_CONFIGURED))
        circuits = self._free_circuits if is_free else self.circuits
        return _Target(candidate, credentials, CircuitKey.of(tenant_id, candidate), circuits, is_free)

    def _enters(self, candidate: Candidate, x: Admitted, exchange: Exchange) -> bool:
        """Leave the previous deployment. If the candidate is a deployment, occupy a place there. Return whether the
        candidate may be tried."""
        self._leave(exchange)
        deployment = x.routed.deployment_of(candidate)
        if deployment is None:
            return True
        exchange.place = self.loads.enter(deployment)
        if exchange.place is None:
            exchange.attempts.append(new_attempt(candidate, None, DEPLOYMENT_FULL, BUSY_SECONDS))
        return exchange.place is not None

    async def _admitted(self, target: _Target, x: Admitted, exchange: Exchange) -> bool:
        """Count an attempt, or release its circuit. Return whether it is admitted."""
        is_admitted = False
        try:
            is_admitted = await self._counted(target, x, exchange)
        finally:
            if not is_admitted:
                target.circuits.released(target.key)
        return is_admitted

    async def _counted(self, target: _Target, x: Admitted, exchange: Exchange) -> bool:
        """Count an attempt against the limits of the request's deployment. Return whether it is admitted."""
        place: Place = exchange.place
        tokens = 0
        if place.deployment.tokens_per_minute is not None:
            requirements = routing_needs(x.call_request)
            tokens = requirements.input_tokens + requirements.output_tokens
        wait = await self.loads.count(place, tokens)
        if wait is not None:
            exchange.attempts.append(new_attempt(target.candidate, None, DEPLOYMENT_FULL, wait))
        return wait is None

    def _leave(self, exchange: Exchange) -> None:
        place, exchange.place = exchange.place, None
        if place is not None:
            place.release(self._ports.clock.monotonic())

    async def _last_resort(
        self, candidate: Candidate, x: Admitted, exchange: Exchange, progress: _Progress
    ) -> Reply | None:
        """Make one attempt even though the circuit is open."""
        exchange.attempts.remove(new_attempt(candidate, None, CIRCUIT_OPEN))
        target = self._target(candidate, x, exchange)
        if x.routed.deployments is not None:
            if not self._enters(candidate, x, exchange):
                return None
            if exchange.place is not None and not await self._counted(target, x, exchange):
                return None
        for credential in target.credentials:
            reply, following = await self._attempt(target, credential, x, exchange, progress)
            if reply is not None or following != "credential":
                return reply
        return None

    async def _attempt(
        self, target: _Target, credential: Credential, x: Admitted, exchange: Exchange, progress: _Progress
    ) -> tuple[Reply | None, _Next]:
        """Return a successful reply, or None and what to try next. Raises an error that the client caused."""
        candidate = target.candidate
        try:
            reply = await self._call_with_circuits(target, credential, x, exchange, progress)
        except ProviderFailed as failed:
            duration_ms = self._duration_ms(progress)
            if failed.client_error is not None and failed.reason != NOT_CONVERTIBLE:
                exchange.chosen, exchange.credential, exchange.attempt_ms = candidate, credential.label, duration_ms
                raise failed.client_error from None
            exchange.attempts.append(
                new_attempt(
                    candidate,
                    failed.status,
                    failed.reason,
                    failed.retry_after,
                    duration_ms,
                    credential=credential.label,
                )
            )
            if failed.client_error is not None:
                # Another candidate may be able to express the call. The error is kept without its traceback, which
                # would keep the frames of the conversion, and with them the call.
                refusal = failed.client_error.with_traceback(None)
                progress.not_convertible = progress.not_convertible or (candidate, refusal)
                if exchange.place is not None:
                    exchange.place.cancel_reservation()
            if failed.retryable:
                return None, "retry"
            return None, "credential" if failed.reason in CREDENTIAL_REASONS else "candidate"
        except ProviderUnavailable:
            exchange.attempts.append(new_attempt(candidate, None, KILL_SWITCHED))
            return None, "candidate"
        exchange.chosen, exchange.credential = candidate, credential.label
        exchange.attempt_ms = self._duration_ms(progress)
        return reply, "candidate"

    def _duration_ms(self, progress: _Progress) -> float:
        """Return the time since the last attempt began."""
        return milliseconds(self._ports.clock.monotonic() - progress.attempt_started)

    async def _call_with_circuits(
        self, target: _Target, credential: Credential, x: Admitted, exchange: Exchange, progress: _Progress
    ) -> Reply:
        """Make one call, and report the result to the circuits and the credentials."""
        candidate, key, circuits, is_free = target.candidate, target.key, target.circuits, target.is_free
        started = progress.attempt_started = self._ports.clock.monotonic()
        unanswered = len(exchange.unanswered)
        try:
            if exchange.trace is None:
                reply = await self._call(candidate, credential, x, exchange)
            else:
                call = exchange.trace.call(candidate.provider, candidate.model, started)
                reply = await self._traced_call(call, candidate, credential, x, exchange)
        except ProviderFailed as failed:
            sent = len(exchange.unanswered) > unanswered
            if failed.reason != OutboundTimeout.reason:
                # The provider has answered with an error, so the call is removed from the unanswered calls.
                del exchange.unanswered[unanswered:]
            if failed.reason in CREDENTIAL_REASONS and not is_free:
                wait = self.credentials.failed(TenantId(key.tenant_id), candidate, credential, failed)
                # Without an alias, a model whose credentials are refused keeps its place in the chain.
                if wait is not None and (failed.reason == RATE_LIMITED or exchange.place is not None):
                    self.cooldowns.begin(key, wait)
            if failed.retryable:
                (circuits.failed if sent else circuits.not_connected)(key)
            else:
                (circuits.released if failed.status is None else circuits.refused)(key)
            raise
        except BaseException:
            circuits.released(key)
            raise
        circuits.succeeded(key)
        if is_free:
            return reply
        if reply.exhausted_seconds is not None:
            self._exhausted(candidate, credential, key, reply.exhausted_seconds)
        latency_ms = (self._ports.clock.monotonic() - started) * 1000
        self._ports.latencies.answered(candidate.model.id, latency_ms, stream=x.call_request.call.stream)
        return reply

    def _exhausted(self, candidate: Candidate, credential: Credential, key: CircuitKey, seconds: float) -> None:
        """Begin a cooldown of the credential, and one of the model if no other credential is available."""
        wait = self.credentials.rest(TenantId(key.tenant_id), candidate, credential, seconds)
        if wait is not None:
            self.cooldowns.begin(key, wait)

    async def _traced_call(
        self,
        call: tracing.TracedCall,
        candidate: Candidate,
        credential: Credential,
        x: Admitted,
        exchange: Exchange,
    ) -> Reply:
        """Make one call, and record it in the request's trace."""
        assert exchange.trace is not None
        # A cancellation leaves this value unchanged; every other end replaces it.
        call.failed = "cancelled"
        try:
            reply = await self._call(candidate, credential, x, exchange, exchange.trace.headers(call))
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
        self,
        candidate: Candidate,
        credential: Credential,
        x: Admitted,
        exchange: Exchange,
        headers: Mapping[str, str] = tracing.NO_HEADERS,
    ) -> Reply:
        ports, call_request = self._ports, x.call_request
        switches, tenant_id = ports.switches, call_request.identified.policy.tenant_id
        unanswered = len(exchange.unanswered)
        ask = _CALLS.get(call_request.call.dialect, call_provider)

        def gate() -> None:
            """Check the permission again right before the first byte. It is called for each connection that is
            tried."""
            pipeline.obey(pipeline.SENDING(call_request, candidate, ports))
            exchange.unanswered[unanswered:] = [candidate]

        for synchronizations in range(_MAX_SYNCHRONIZATIONS):
            await switches.in_touch()
            try:
                if synchronizations or exchange.attempts:
                    # If the permission was revoked in the meantime, the attempt ends without a connection.
                    pipeline.obey(pipeline.SENDING(call_request, candidate, ports))
                elif not switches.up_to_date():
                    continue
                return await ask(
                    call_request.call,
                    candidate,
                    secret=ports.secrets.open(tenant_id, credential.key, credential.sealed),
                    outbound=ports.outbound,
                    max_response_bytes=ports.max_response_bytes,
                    gate=gate,
                    headers=headers,
                    output_limit=x.output_limit,
                )
            except OutOfTouch:
                # Nothing was sent, because the gate runs before the first byte.
                continue
        raise OutOfTouch
