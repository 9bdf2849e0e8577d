"""Checks one event of the audit chain against the previous event."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gatehouse.platform.changes.chain.actions import RECORDS_LOST
from gatehouse.platform.changes.chain.links import AuditEvent, link, personal_digest


class Break(NamedTuple):
    """A place where the chain is broken, and the reason."""

    sequence: int
    reason: str


class Gap(NamedTuple):
    """An event that documents records that an outpost lost."""

    sequence: int
    reason: str


def check_event(row: Any, last: int, previous: bytes) -> Iterator[Break]:
    """Yield the breaks at an event, which is a row of `audit_events`. The previous event has the sequence `last` and
    the hash `previous`."""
    if row.sequence <= last:
        yield Break(row.sequence, "occurs twice")
    elif row.sequence > last + 1:
        yield Break(last + 1, "missing" if row.sequence == last + 2 else f"missing, up to {row.sequence - 1}")
    elif row.prev_hash != previous:
        yield Break(row.sequence, "does not follow the previous event")
    event = AuditEvent(**{name: getattr(row, name) for name in AuditEvent.__struct_fields__})
    if not _is_forgotten(event) if event.salt is None else personal_digest(event) != row.personal_digest:
        yield Break(row.sequence, "actor, address or details were changed")
    elif link(row.prev_hash, row.tenant_id, row.sequence, event, row.personal_digest) != row.hash:
        yield Break(row.sequence, "changed: its hash does not match")


def gap_of(row: Any) -> Gap | None:
    """Return the gap that the event documents, or None."""
    if row.action != RECORDS_LOST:
        return None
    details = row.details
    amount = f"{details['records']} records" if details.get("records") else f"{details.get('bytes')} bytes"
    return Gap(row.sequence, f"{row.reason}: {amount} of outpost {row.resource_id}")


def _is_forgotten(event: AuditEvent) -> bool:
    """Return whether the event is in the form in which `gatehouse_anonymise` leaves an event. Such an event has no
    salt, so its personal fields cannot be checked. It has no actor if the actor was a removed person, and no details if
    the resource was one."""
    actor_removed = event.actor_id is None and event.ip is None
    return actor_removed or (event.resource_type == "user" and event.details == {})
