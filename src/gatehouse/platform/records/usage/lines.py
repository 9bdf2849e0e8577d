"""Usage records as the drain copies them."""

from datetime import datetime
from typing import Final, NamedTuple

from gatehouse.engine.outcome import Outcome
from gatehouse.platform.records import copying

COLUMNS: Final = (
    "tenant_id, id, timestamp, request_id, user_id, group_id, api_key_id, client_id, provider, model_id,"
    " requested_model, status, stream, input_tokens, output_tokens, cached_tokens, cost_usd, latency_ms,"
    " time_to_first_token_ms, provider_latency_ms, fallbacks, routing_policy_id, dlp_action, cache"
)


class Ended(NamedTuple):
    """`moment` is the outcome's timestamp. Nobody knows an interrupted stream's `latency`."""

    outcome: Outcome[str]
    moment: datetime
    latency: float | None


def line(ended: Ended) -> str:
    outcome, moment, latency = ended
    return "\t".join((
        outcome.tenant_id,
        outcome.id,
        moment.isoformat(),
        copying.text(outcome.request_id),
        copying.known(outcome.user_id),
        copying.known(outcome.group_id),
        copying.known(outcome.api_key_id),
        copying.known(outcome.client_id),
        copying.known_text(outcome.provider),
        copying.known_text(outcome.model_id),
        copying.known_text(outcome.requested_model),
        outcome.outcome,
        copying.boolean(outcome.stream),
        copying.number(outcome.input_tokens),
        copying.number(outcome.output_tokens),
        copying.number(outcome.cached_tokens),
        copying.known_text(outcome.cost_usd),
        copying.number(latency),
        copying.number(outcome.time_to_first_token_ms),
        copying.number(outcome.provider_latency_ms),
        repr(outcome.fallbacks),
        copying.text(outcome.routing_policy_id),
        copying.text(outcome.dlp_action),
        copying.known(outcome.cache),
    ))  # fmt: skip
