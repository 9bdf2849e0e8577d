"""The chain's rows as the drain inserts them."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gatehouse.platform.chain.links import AuditEvent, link
from gatehouse.platform.records import arrays

COLUMNS: Final = arrays.Columns(
    "tenant_id uuid, id uuid, timestamp timestamptz, actor_id text, actor_type text, action text,"
    " resource_type text, resource_id text, request_id text, ip text, outcome text, target_provider text,"
    " target_model text, reason text, details jsonb, salt bytea, personal_digest bytea, sequence bigint,"
    " prev_hash bytea, hash bytea"
)

#: An event and its `personal_digest`.
Digested = tuple[AuditEvent, bytes]


class End(msgspec.Struct):
    """The end of a tenant's chain, whose row is locked."""

    tenant_id: str
    sequence: int
    hash: bytes


def rows(tenant_id: str, events: Iterable[Digested]) -> Iterator[arrays.Row]:
    """All but the last three columns: what needs no lock."""
    tenant = arrays.text(tenant_id)
    for event, personal in events:
        yield (
            tenant,
            arrays.text(str(event.id)),
            event.timestamp.isoformat(),
            arrays.text(event.actor_id),
            arrays.known_text(event.actor_type),
            arrays.known_text(event.action),
            arrays.known_text(event.resource_type),
            arrays.text(event.resource_id),
            arrays.text(event.request_id),
            arrays.text(event.ip),
            arrays.known_text(event.outcome),
            arrays.known_text(event.target_provider),
            arrays.known_text(event.target_model),
            arrays.known_text(event.reason),
            arrays.json(event.details),
            arrays.binary(event.salt),
            arrays.binary(personal),
        )


def links(end: End, events: Iterable[Digested]) -> Iterator[arrays.Row]:
    """The last three columns: the events' places in the chain after `end`, which moves on."""
    for event, personal in events:
        previous = end.hash
        end.sequence += 1
        end.hash = link(previous, end.tenant_id, end.sequence, event, personal)
        yield repr(end.sequence), arrays.binary(previous), arrays.binary(end.hash)
