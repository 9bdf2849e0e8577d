"""Sends copies of requests to the shadows of a model alias, discards the answers, and records cost and latency
(docs/deployments.md).

A copy is sent after the caller's request has ended, so that it delays nothing. It is skipped if the caller may not use
the shadow's model, if a budget has no room for it, or if this worker has the maximum number of copies in progress.
Copies count against the organization's budgets, not against those of the caller.
"""

import asyncio
from collections.abc import Callable
from types import CoroutineType
from typing import Final, Protocol, TypeAlias

import msgspec
import structlog

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.dialects.token_counts import COUNTING
from gatehouse.engine.exchange import Admitted, CallRequest, Exchange, Routed
from gatehouse.engine.money.bound import call_size
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import ProviderFailed, Reply
from gatehouse.engine.routing.attempts import Attempts
from gatehouse.engine.routing.circuits import CircuitKey
from gatehouse.engine.stages.calls.record import Recorder
from gatehouse.engine.timing import milliseconds
from gatehouse.engine.verdict import Hold, Refuse, Reroute
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.tasks import cancel_all
from gatehouse.policy.aliases import Alias, Deployment
from gatehouse.policy.catalog import Candidate

log = structlog.get_logger(__name__)

#: Maximum number of copies that a worker has in progress. Further ones are skipped.
MAX_SHADOWS_IN_PROGRESS: Final = 32
#: Largest body that is copied, with its files. Bodies of copies in progress remain in memory.
MAX_SHADOW_BODY_BYTES: Final = 1024**2
#: Tolerance of a sum of shares, which are floats.
_ONE_COPY: Final = 1 - 1e-9

#: Returns the verdict that excludes a candidate, or None if the candidate may be called.
Judge: TypeAlias = Callable[[CallRequest, Candidate, Ports], Refuse | Reroute | Hold | None]


class Settling(Protocol):
    """The part of `engine.settling.Settlement` that completes a copy."""

    def price(self, reply: Reply, exchange: Exchange) -> None: ...

    async def finish(self, exchange: Exchange, recorder: Recorder) -> None: ...

    def leave(self, exchange: Exchange, recorder: Recorder) -> None: ...


class Shadows:
    """The copies of one worker."""

    def __init__(self, ports: Ports, attempts: Attempts, settling: Settling, judge: Judge) -> None:
        self._ports = ports
        self._attempts = attempts
        self._settling = settling
        self._judge = judge
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def __len__(self) -> int:
        """Return the number of copies in progress."""
        return len(self._tasks)

    def follow(self, x: Exchange) -> None:
        """Start the copies of a request that has ended, if its alias has shadows. Does not wait, and never fails."""
        if x.routed is None or x.routed.alias is None or not x.routed.alias.shadows or self._is_stopped:
            return
        try:
            if _is_copied(x):
                self._start(x, x.routed.alias)
        except Exception:
            log.exception("shadow.fault", request_id=x.identified.received.request_id)

    def _start(self, x: Exchange, alias: Alias) -> None:
        for shadow in alias.shadows:
            load = self._attempts.loads.of(shadow)
            load.shadow_turn += shadow.share
            if load.shadow_turn < _ONE_COPY:
                continue
            load.shadow_turn -= 1.0
            if len(self._tasks) < MAX_SHADOWS_IN_PROGRESS and self._may_answer(x, shadow):
                task = asyncio.create_task(self._copy(x, shadow))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def wait(self) -> None:
        """Wait until the copies in progress have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Start no more copies, cancel those in progress, and wait until they are recorded."""
        self._is_stopped = True
        await cancel_all(*self._tasks)

    def _may_answer(self, x: Exchange, shadow: Deployment) -> bool:
        assert x.call_request is not None
        candidate = shadow.candidate
        if self._attempts.circuits.is_open(CircuitKey.of(x.identified.policy.tenant_id, candidate)):
            return False
        judged = msgspec.structs.replace(x.call_request, rule_events=[], sample=None)
        return self._judge(judged, candidate, self._ports) is None

    async def _copy(self, x: Exchange, shadow: Deployment) -> None:
        exchange, recorder = _exchange(x, shadow, self._ports), Recorder(self._ports)
        try:
            async with asyncio.timeout(self._ports.request_deadline_seconds):
                await self._send(exchange, x.output_limit)
        except TimeoutError:
            exchange.outcome, exchange.error_code = "error", "shadow_timeout"
        except Refusal as error:
            exchange.status, exchange.error_code = error.status, error.code
        except ProviderFailed as failed:
            exchange.error_code = failed.reason
        except asyncio.CancelledError:
            if exchange.admitted is not None:
                exchange.outcome, exchange.status = "cancelled", 499
                self._settling.leave(exchange, recorder)
            raise
        except Exception:
            log.exception("shadow.fault", request_id=exchange.identified.received.request_id)
        if exchange.admitted is None:
            # Nothing was sent, because a budget has no room.
            return
        try:
            await self._settling.finish(exchange, recorder)
        except Refusal as error:
            log.warning("shadow.record_refused", reason=error.code)

    async def _send(self, exchange: Exchange, output_limit: int | None) -> None:
        """Reserve the cost, call the provider, and read the answer to its end. `output_limit` is the limit that was
        sent with the original."""
        routed, clock = exchange.routed, self._ports.clock
        assert routed is not None
        call_request = routed.call_request
        # The organization's budgets count the copy.
        organization = msgspec.structs.replace(call_request, identified=exchange.identified)
        counted = pipeline.RESERVE_COPY(msgspec.structs.replace(routed, call_request=organization), self._ports)
        if isinstance(counted, CoroutineType):
            counted = await counted
        if not isinstance(counted, Admitted):
            return
        exchange.admitted = admitted = msgspec.structs.replace(
            counted,
            routed=routed,
            call_request=call_request,
            output_limit=counted.output_limit or output_limit,
        )
        started = clock.monotonic()
        reply = await self._attempts.answer(admitted, exchange)
        exchange.provider_latency_ms = milliseconds(clock.monotonic() - started)
        try:
            if reply.events is not None:
                exchange.time_to_first_token_ms = exchange.provider_latency_ms
                async for _ in reply.events:
                    pass
            exchange.outcome, exchange.status = "success", reply.status
        finally:
            self._settling.price(reply, exchange)
            await reply.close()


def _is_copied(x: Exchange) -> bool:
    """Return whether a request is copied: a call that was sent to a provider, that a provider can repeat without a side
    effect, and that is not too large."""
    call_request = x.call_request
    if call_request is None or x.shadow or x.outcome not in {"success", "error"} or x.cache == "hit":
        return False
    call, size = call_request.call, call_size(call_request)
    if call.dialect in COUNTING or size.fills_context:
        # Tools that the provider runs fill the context. They must not run twice.
        return False
    if call.body.get("store") is True or call.options.keeps:
        # The provider would keep an answer that nobody can delete.
        return False
    if call.options.containers:
        # Only the provider of the container has it.
        return False
    return size.json_bytes + sum(len(file.data) for file in call.files) <= MAX_SHADOW_BODY_BYTES


def _exchange(x: Exchange, shadow: Deployment, ports: Ports) -> Exchange:
    """Return the exchange of a copy. It is recorded without the caller, because the organization sends it."""
    assert x.call_request is not None
    assert x.routed is not None
    received = msgspec.structs.replace(
        x.identified.received, received_at=ports.clock.now(), started=ports.clock.monotonic(), body=b""
    )
    caller = Caller(kind=x.identified.caller.kind, tenant_id=x.identified.caller.tenant_id)
    identified = msgspec.structs.replace(x.identified, received=received, caller=caller)
    call = msgspec.structs.replace(x.call_request.call, fallbacks=())
    call_request = msgspec.structs.replace(x.call_request, call=call, rule_events=[], inspection=None, sample=None)
    routed = Routed(
        call_request=call_request,
        chain=(shadow.candidate,),
        alias=x.routed.alias,
        deployments={shadow.name: shadow},
    )
    return Exchange(
        identified=identified,
        tags=x.tags,
        call_request=call_request,
        routed=routed,
        chosen=shadow.candidate,
        shadow=True,
    )
