"""The chain's rows as the drain copies them."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gatehouse.platform.chain.links import AuditEvent, link
from gatehouse.platform.records import copying

COLUMNS: Final = (
    "tenant_id, sequence, id, timestamp, actor_id, actor_type, action, resource_type, resource_id, request_id, ip,"
    " outcome, target_provider, target_model, reason, details, salt, personal_digest, prev_hash, hash"
)


class End(msgspec.Struct):
    """The end of a tenant's chain, whose row is locked."""

    tenant_id: str
    sequence: int
    hash: bytes


def chained_lines(end: End, events: Iterable[tuple[AuditEvent, bytes]]) -> Iterator[str]:
    """The events' lines, chained after `end`, which moves on. Each comes with its `personal_digest`, which needs no
    lock and is better made before."""
    for event, personal in events:
        previous = end.hash
        end.sequence += 1
        end.hash = link(previous, end.tenant_id, end.sequence, event, personal)
        yield "\t".join((
            end.tenant_id,
            repr(end.sequence),
            str(event.id),
            event.timestamp.isoformat(),
            copying.known(event.actor_id),
            event.actor_type,
            event.action,
            copying.known_text(event.resource_type),
            copying.text(event.resource_id),
            copying.text(event.request_id),
            copying.known_text(event.ip),
            event.outcome,
            copying.known_text(event.target_provider),
            copying.known_text(event.target_model),
            copying.known_text(event.reason),
            copying.json(event.details),
            copying.binary(event.salt),
            copying.binary(personal),
            copying.binary(previous),
            copying.binary(end.hash),
        ))  # fmt: skip
