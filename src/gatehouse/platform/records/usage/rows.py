"""Converts usage records of the journal into rows of the database (`platform.records.arrays`)."""

from datetime import datetime
from typing import Final

import msgspec

from gatehouse.engine.records.outcome import Outcome
from gatehouse.platform.records import arrays

COLUMNS: Final = arrays.Columns(
    "tenant_id uuid, id uuid, timestamp timestamptz, request_id text, user_id uuid, group_id uuid,"
    " api_key_id uuid, client_id uuid, provider text, model_id text, requested_model text, status text,"
    " stream boolean, input_tokens bigint, output_tokens bigint, cached_tokens bigint, cost_usd numeric,"
    " latency_ms double precision, time_to_first_token_ms double precision, provider_latency_ms double precision,"
    " fallbacks integer, routing_policy_id text, dlp_action text, cache text,"
    " end_user text, tags jsonb, error_code text, attempts jsonb, attempt_ms double precision, model_alias text,"
    " shadow boolean, credential text"
)


def row(outcome: Outcome[str], moment: datetime, latency: float | None) -> arrays.Row:
    """Return the row of an outcome. `moment` is the outcome's timestamp. `latency` is in milliseconds, or None for an
    interrupted stream."""
    return (
        arrays.cached_text(outcome.tenant_id),
        arrays.text(outcome.id),
        moment.isoformat(),
        arrays.text(outcome.request_id),
        arrays.text(outcome.user_id),
        arrays.text(outcome.group_id),
        arrays.text(outcome.api_key_id),
        arrays.text(outcome.client_id),
        arrays.cached_text(outcome.provider),
        arrays.cached_text(outcome.model_id),
        arrays.cached_text(outcome.requested_model),
        arrays.cached_text(outcome.outcome),
        arrays.boolean(outcome.stream),
        arrays.number(outcome.input_tokens),
        arrays.number(outcome.output_tokens),
        arrays.number(outcome.cached_tokens),
        arrays.cached_text(outcome.cost_usd),
        arrays.number(latency),
        arrays.number(outcome.time_to_first_token_ms),
        arrays.number(outcome.provider_latency_ms),
        repr(outcome.fallbacks),
        arrays.cached_text(outcome.routing_policy_id),
        arrays.cached_text(outcome.dlp_action),
        arrays.cached_text(outcome.cache),
        arrays.text(outcome.end_user),
        arrays.json(outcome.tags) if outcome.tags else arrays.NULL,
        arrays.cached_text(outcome.error_code),
        arrays.json([msgspec.structs.asdict(attempt) for attempt in outcome.attempts])
        if outcome.attempts
        else arrays.NULL,
        arrays.number(outcome.attempt_ms),
        arrays.cached_text(outcome.model_alias),
        arrays.boolean(outcome.shadow),
        arrays.cached_text(outcome.credential),
    )
