"""Records the outcome of a request. This module is the only writer, and writes one outcome for each request, however
the request ends.
"""

from collections.abc import Awaitable
from uuid import UUID

import structlog

from gatehouse.engine.exchange import Exchange, Identified
from gatehouse.engine.ports import Ports, Reserved
from gatehouse.engine.records.outcome import (
    DlpEvent,
    Failed,
    Opened,
    Outcome,
    Scanned,
    encode,
    group_of,
)
from gatehouse.engine.stages.calls.budget import counts
from gatehouse.engine.timing import milliseconds
from gatehouse.foundation.ids import new_id

log = structlog.get_logger(__name__)


def scanned(x: Identified, model: str | None, events: tuple[DlpEvent, ...], ports: Ports) -> Awaitable[None]:
    """Record the findings of a scan. Raises the same errors as `Recorder.finished`."""
    received, caller = x.received, x.caller
    entry = Scanned(
        id=new_id(),
        tenant_id=x.policy.tenant_id,
        timestamp=received.received_at,
        request_id=received.request_id,
        actor_type=caller.kind,
        user_id=caller.user_id,
        api_key_id=caller.api_key_id,
        client_id=caller.client_id,
        ip=received.client_address,
        requested_model=model,
        provider=None,
        model_id=None,
        dlp_events=events,
        group_ids=caller.groups,
    )
    return ports.journal.append(encode(entry))


class Recorder:
    """Records one request. `id` is the id of the usage record. The entry that opens a stream and the entry that ends it
    have the same id."""

    __slots__ = ("_opened", "_ports", "claimed", "id")

    def __init__(self, ports: Ports) -> None:
        self.id = new_id()
        self._ports = ports
        #: whether the end of this request is already being recorded
        self.claimed = False
        self._opened = False

    async def opened(self, x: Exchange) -> None:
        """Record that a stream begins. From this point on the stream cannot be lost; it can only be interrupted."""
        if self._opened:
            return
        self._opened = True
        identified, call_request, chosen = x.identified, x.call_request, x.chosen
        received, caller = identified.received, identified.caller
        entry = Opened(
            id=self.id,
            tenant_id=identified.policy.tenant_id,
            timestamp=received.received_at,
            request_id=received.request_id,
            actor_type=caller.kind,
            user_id=caller.user_id,
            api_key_id=caller.api_key_id,
            client_id=caller.client_id,
            ip=received.client_address,
            requested_model=call_request.call.model if call_request else None,
            provider=chosen.provider.id if chosen else None,
            model_id=chosen.model.model_id if chosen else None,
            group_ids=caller.groups,
            rule_events=tuple(call_request.rule_events) if call_request else (),
            routing_policy_id=x.routing_policy_id,
            dlp_events=call_request.inspection.events() if call_request and call_request.inspection else (),
            end_user=x.end_user,
            tags=x.tags,
            model_alias=x.model_alias,
        )
        await self._ports.journal.append(encode(entry))

    def claim(self) -> bool:
        """Return True on the first call, and False afterwards. The first caller settles and records the request."""
        if self.claimed:
            return False
        self.claimed = True
        return True

    def finished(self, x: Exchange) -> Awaitable[None]:
        """Record the outcome. Only the owner of the claim calls this. The call itself queues the entry, even if its
        result is not awaited. Raises `Unavailable`, at once or when awaited, if the journal refuses the entry."""
        ports = self._ports
        try:
            if not x.shadow:
                ports.meter.finished(x)
            if x.trace is not None and ports.traces is not None:
                ports.traces.finished(x)
        except Exception:
            # The request is recorded even if its metrics fail.
            log.exception("record.metrics_fault", request_id=x.identified.received.request_id)
        identified, call_request, chosen, usage = x.identified, x.call_request, x.chosen, x.usage
        received, caller = identified.received, identified.caller
        inspection = call_request.inspection if call_request else None
        # The fields are written out here and in `opened`, because building a record from a dictionary takes twice as
        # long.
        entry = Outcome(
            id=self.id,
            tenant_id=identified.policy.tenant_id,
            timestamp=received.received_at,
            request_id=received.request_id,
            actor_type=caller.kind,
            user_id=caller.user_id,
            api_key_id=caller.api_key_id,
            client_id=caller.client_id,
            ip=received.client_address,
            requested_model=call_request.call.model if call_request else None,
            provider=chosen.provider.id if chosen else None,
            model_id=chosen.model.model_id if chosen else None,
            path=received.path,
            outcome=x.outcome,
            status=x.status,
            error_code=x.error_code,
            stream=call_request.call.stream if call_request else False,
            input_tokens=usage.input_tokens + usage.cache_write_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            cached_tokens=usage.cached_tokens if usage else None,
            cost_usd=x.cost_text,
            latency_ms=milliseconds(ports.clock.monotonic() - received.started),
            time_to_first_token_ms=x.time_to_first_token_ms,
            provider_latency_ms=x.provider_latency_ms,
            fallbacks=x.fallbacks,
            dlp_action=inspection.action if inspection else None,
            group_id=group_of(caller.groups) if caller.groups else None,
            routing_policy_id=x.routing_policy_id,
            dlp_events=inspection.events() if inspection else (),
            group_ids=caller.groups,
            rule_events=tuple(call_request.rule_events) if call_request else (),
            budgets=_budgets(x),
            attempts=_failed(x) if x.attempts else (),
            cache=None if x.cacheable is None else x.cacheable.lookup,
            end_user=x.end_user,
            tags=x.tags,
            attempt_ms=x.attempt_ms,
            model_alias=x.model_alias,
            shadow=x.shadow,
            credential=x.credential,
        )
        return ports.journal.append(encode(entry))


def _budgets(x: Exchange) -> tuple[tuple[UUID, int], ...]:
    reserved: Reserved | None = x.admitted.reserved if x.admitted else None
    return () if reserved is None or not counts(x) else reserved.periods


def _failed(x: Exchange) -> tuple[Failed, ...]:
    return tuple(
        Failed(
            provider=attempt.provider,
            model_id=attempt.model,
            status=attempt.status,
            reason=attempt.reason,
            duration_ms=attempt.duration_ms,
            credential=attempt.credential,
        )
        for attempt in x.attempts
    )
