"""What is written down about a request: once when a stream opens, once when the request is over.

These are the journal's entries. Fields are only ever appended, with a default, so that an older line stays readable.
"""

from typing import TypeAlias
from uuid import UUID

import msgspec


class Opened(msgspec.Struct, array_like=True, tag="opened", kw_only=True, gc=False, omit_defaults=False):
    """A stream is about to send its first byte. Without an `Outcome` of the same id later, it was interrupted."""

    #: the usage record's id
    id: UUID
    tenant_id: UUID
    #: Unix time the request arrived
    timestamp: float
    request_id: str
    actor_type: str
    user_id: UUID | None
    api_key_id: UUID | None
    client_id: UUID | None
    ip: str
    requested_model: str | None
    provider: str | None
    model_id: str | None


class Outcome(msgspec.Struct, array_like=True, tag="outcome", kw_only=True, gc=False):
    """A request is over. `outcome` is one of `success`, `error`, `refused`, `cancelled`, `interrupted`; `status` the
    HTTP status the client was given; money is a decimal string."""

    id: UUID
    tenant_id: UUID
    timestamp: float
    request_id: str
    actor_type: str
    user_id: UUID | None
    api_key_id: UUID | None
    client_id: UUID | None
    ip: str
    path: str
    requested_model: str | None
    provider: str | None
    model_id: str | None
    outcome: str
    status: int
    error_code: str | None
    stream: bool
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: str | None
    latency_ms: float
    time_to_first_token_ms: float | None
    provider_latency_ms: float | None
    #: candidates that failed before the one that answered
    fallbacks: int
    dlp_action: str
    group_id: UUID | None = None
    routing_policy_id: str | None = None


Entry: TypeAlias = Opened | Outcome

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


def encode(entry: Entry) -> bytes:
    """One journal entry: JSON without a line break."""
    return _encoder.encode(entry)


def decode(line: bytes) -> Entry:
    return _decoder.decode(line)
