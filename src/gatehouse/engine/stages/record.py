"""Writes down what came of a request. The only writer: one outcome a request, whatever happened to it."""

from collections.abc import Awaitable

from gatehouse.engine.exchange import Answered
from gatehouse.engine.outcome import Opened, Outcome, encode
from gatehouse.engine.ports import Ports
from gatehouse.foundation.ids import new_id


class Recorder:
    """One request's. `id` is the usage record's, the same in the entry that opens a stream and the one that ends it."""

    __slots__ = ("_claimed", "_ports", "id")

    def __init__(self, ports: Ports) -> None:
        self.id = new_id()
        self._ports = ports
        self._claimed = False

    def opened(self, x: Answered) -> Awaitable[None]:
        """A stream is about to begin: from here on it cannot be lost, only interrupted."""
        received, caller = x.identified.received, x.identified.caller
        entry = Opened(
            id=self.id,
            tenant_id=x.identified.policy.tenant_id,
            timestamp=received.received_at,
            request_id=received.request_id,
            actor_type=caller.kind.value,
            user_id=caller.user_id,
            api_key_id=caller.api_key_id,
            client_id=caller.client_id,
            ip=received.client_address,
            requested_model=x.asked.call.model if x.asked else None,
            provider=x.chosen.provider.id if x.chosen else None,
            model_id=x.chosen.model.model_id if x.chosen else None,
        )
        return self._ports.journal.append(encode(entry))

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
        received, caller = x.identified.received, x.identified.caller
        usage = x.usage
        entry = Outcome(
            id=self.id,
            tenant_id=x.identified.policy.tenant_id,
            timestamp=received.received_at,
            request_id=received.request_id,
            actor_type=caller.kind.value,
            user_id=caller.user_id,
            api_key_id=caller.api_key_id,
            client_id=caller.client_id,
            ip=received.client_address,
            path=received.path,
            requested_model=x.asked.call.model[:500] if x.asked else None,
            provider=x.chosen.provider.id if x.chosen else None,
            model_id=x.chosen.model.model_id if x.chosen else None,
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
            dlp_action=x.asked.dlp_action if x.asked else None,
        )
        return self._ports.journal.append(encode(entry))
