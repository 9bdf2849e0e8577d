"""Converts audit events of the journal into rows of the database (`platform.records.arrays`)."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gatehouse.platform.changes.chain.links import AuditEvent, link
from gatehouse.platform.records import arrays

COLUMNS: Final = arrays.Columns(
    "tenant_id uuid, id uuid, timestamp timestamptz, actor_id text, actor_type text, action text,"
    " resource_type text, resource_id text, request_id text, ip text, outcome text, target_provider text,"
    " target_model text, reason text, details jsonb, salt bytea, personal_digest bytea, sequence bigint,"
    " prev_hash bytea, hash bytea"
)

#: An event, and the `personal_digest` of the event.
Digested = tuple[AuditEvent, bytes]


class ChainHead(msgspec.Struct):
    """The head of a tenant's chain. Its row is locked."""

    tenant_id: str
    sequence: int
    hash: bytes


def unchained_rows(tenant_id: str, events: Iterable[Digested]) -> Iterator[arrays.Row]:
    """Yield the rows of the events without the last three columns, which depend on the chain. Needs no lock."""
    tenant = arrays.text(tenant_id)
    for event, personal in events:
        yield (
            tenant,
            arrays.text(str(event.id)),
            event.timestamp.isoformat(),
            arrays.text(event.actor_id),
            arrays.cached_text(event.actor_type),
            arrays.cached_text(event.action),
            arrays.cached_text(event.resource_type),
            arrays.text(event.resource_id),
            arrays.text(event.request_id),
            arrays.text(event.ip),
            arrays.cached_text(event.outcome),
            arrays.cached_text(event.target_provider),
            arrays.cached_text(event.target_model),
            arrays.cached_text(event.reason),
            arrays.json(event.details),
            arrays.binary(event.salt),
            arrays.binary(personal),
        )


def link_rows(head: ChainHead, events: Iterable[Digested]) -> Iterator[arrays.Row]:
    """Yield the last three columns of the events' rows, with positions after `head`. Advances `head`."""
    for event, personal in events:
        previous = head.hash
        head.sequence += 1
        head.hash = link(previous, head.tenant_id, head.sequence, event, personal)
        yield repr(head.sequence), arrays.binary(previous), arrays.binary(head.hash)
