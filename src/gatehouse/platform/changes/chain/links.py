"""The links of the audit chain, as pure functions. The keeper, administration and `gatehouse audit verify` use them."""

import hashlib
import os
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id

#: The previous hash of the first event of a chain.
GENESIS = b""

_encode = msgspec.json.Encoder(order="deterministic").encode


class AuditEvent(msgspec.Struct, kw_only=True):
    """An event without its position in the chain. `details` are names and values of fields. They never contain a
    secret."""

    action: str
    actor_id: str | None
    actor_type: str
    outcome: str = "success"
    resource_type: str | None = None
    resource_id: str | None = None
    request_id: str | None = None
    ip: str | None = None
    target_provider: str | None = None
    target_model: str | None = None
    reason: str | None = None
    details: dict[str, Any] = {}
    #: a string if a query reads the id as text
    id: UUID | str = msgspec.field(default_factory=new_id)
    timestamp: datetime = msgspec.field(default_factory=utc_now)
    salt: bytes | None = msgspec.field(default_factory=lambda: os.urandom(16))


def personal_digest(event: AuditEvent) -> bytes:
    """Return the digest of the event's personal data. The digest is salted, so that the values cannot be guessed once
    the salt is deleted."""
    assert event.salt is not None
    return hashlib.sha256(event.salt + _encode([event.actor_id, event.ip, event.details])).digest()


def link(previous: bytes, tenant_id: UUID | str, sequence: int, event: AuditEvent, personal: bytes) -> bytes:
    """Return the hash of an event. It covers the previous hash, the event's position, and all fields of the event."""
    fields = _encode(
        [
            str(tenant_id),
            sequence,
            str(event.id),
            int(event.timestamp.timestamp() * 1_000_000),
            event.actor_type,
            event.action,
            event.resource_type,
            event.resource_id,
            event.request_id,
            event.outcome,
            event.target_provider,
            event.target_model,
            event.reason,
            personal.hex(),
        ]
    )
    return hashlib.sha256(previous + fields).digest()
