"""Writes down what came of a request. The only writer: one outcome a request, whatever happened to it."""

from collections.abc import Awaitable
from typing import Any
from uuid import UUID

from gatehouse.engine.exchange import Answered, Identified
from gatehouse.engine.outcome import DlpEvent, Failed, Opened, Outcome, Scanned, encode, group_of
from gatehouse.engine.ports import Ports, Reserved
from gatehouse.engine.stages.budget import counts
from gatehouse.foundation.ids import new_id


def scanned(x: Identified, model: str | None, events: tuple[DlpEvent, ...], ports: Ports) -> Awaitable[None]:
    """A text was scanned and something found. Raises as `Recorder.finished` does."""
    received, caller = x.received, x.caller
    entry = Scanned(
        id=new_id(),
        tenant_id=x.policy.tenant_id,
        timestamp=received.received_at,
        request_id=received.request_id,
        actor_type=caller.kind.value,
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
    """One request's. `id` is the usage record's, the same in the entry that opens a stream and the one that ends it."""

    __slots__ = ("_claimed", "_opened", "_ports", "id")

    def __init__(self, ports: Ports) -> None:
        self.id = new_id()
        self._ports = ports
        self._claimed = False
        self._opened = False

    async def opened(self, x: Answered) -> None:
        """A stream is about to begin: from here on it cannot be lost, only interrupted."""
        if self._opened:
            return
        self._opened = True
        inspection = x.asked.inspection if x.asked else None
        events = inspection.events() if inspection else ()
        await self._ports.journal.append(encode(Opened(**self._arrived(x), dlp_events=events)))

    def claim(self) -> bool:
        """Whether the caller is the first who ends this request, and so the one to settle and record it."""
        if self._claimed:
            return False
        self._claimed = True
        return True

    def finished(self, x: Answered) -> Awaitable[None]:
        """The request is over; whoever has the claim says so. The entry is queued at once, also for a caller who will
        not wait. Raises `Unavailable`, now or when awaited, if the journal does not take it."""
        self._ports.meter.finished(x)
        if x.trace is not None and self._ports.traces is not None:
            self._ports.traces.finished(x)
        received, usage = x.identified.received, x.usage
        inspection = x.asked.inspection if x.asked else None
        entry = Outcome(
            **self._arrived(x),
            path=received.path,
            outcome=x.outcome,
            status=x.status,
            error_code=x.error_code,
            stream=x.asked.call.stream if x.asked else False,
            input_tokens=usage.input_tokens + usage.cache_write_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            cached_tokens=usage.cached_tokens if usage else None,
            cost_usd=None if x.cost_usd is None else f"{x.cost_usd:f}",
            latency_ms=round((self._ports.clock.monotonic() - received.started) * 1000, 3),
            time_to_first_token_ms=x.time_to_first_token_ms,
            provider_latency_ms=x.provider_latency_ms,
            fallbacks=x.fallbacks,
            group_id=group_of(x.identified.caller.groups),
            dlp_action=inspection.action if inspection else None,
            dlp_events=inspection.events() if inspection else (),
            budgets=_budgets(x),
            attempts=_failed(x) if x.attempts else (),
            cache=x.cache,
        )
        return self._ports.journal.append(encode(entry))

    def _arrived(self, x: Answered) -> dict[str, Any]:
        """What both entries tell."""
        received, caller, chosen = x.identified.received, x.identified.caller, x.chosen
        return {
            "id": self.id,
            "tenant_id": x.identified.policy.tenant_id,
            "timestamp": received.received_at,
            "request_id": received.request_id,
            "actor_type": caller.kind.value,
            "user_id": caller.user_id,
            "api_key_id": caller.api_key_id,
            "client_id": caller.client_id,
            "ip": received.client_address,
            "requested_model": x.asked.call.model if x.asked else None,
            "provider": chosen.provider.id if chosen else None,
            "model_id": chosen.model.model_id if chosen else None,
            "group_ids": caller.groups,
            "rule_events": tuple(x.asked.rule_events) if x.asked else (),
            "routing_policy_id": x.routing_policy_id,
        }


def _budgets(x: Answered) -> tuple[tuple[UUID, int], ...]:
    reserved: Reserved | None = x.asked.reserved if x.asked else None
    return () if reserved is None or not counts(x) else reserved.periods


def _failed(x: Answered) -> tuple[Failed, ...]:
    return tuple(
        Failed(provider=each.provider, model_id=each.model, status=each.status, reason=each.reason)
        for each in x.attempts
    )
