"""Queues the events of the outbox for the organizations that forward. This happens in the transaction that marks the
events as dispatched.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.changes.outbox import Event

_ADD: Final = text(
    "INSERT INTO siem_queue (tenant_id, id, kind, at, body) SELECT e.tenant_id, e.id, 'event', e.at,"
    " jsonb_build_object('event_type', e.event_type, 'payload', e.payload)"
    " FROM unnest(CAST(:tenants AS uuid[]), CAST(:ids AS uuid[]), CAST(:types AS text[]), CAST(:payloads AS jsonb[]),"
    " CAST(:times AS timestamptz[])) WITH ORDINALITY AS e (tenant_id, id, event_type, payload, at, nth)"
    " JOIN siem_forwarding f ON f.tenant_id = e.tenant_id ORDER BY e.nth"
)


async def enqueue(session: AsyncSession, events: Sequence[Event]) -> None:
    """Add `events` to the queues of their organizations, in order. Events of organizations that do not forward are
    skipped."""
    values = {
        "tenants": [event.tenant_id for event in events],
        "ids": [event.id for event in events],
        "types": [event.event_type for event in events],
        "payloads": [event.payload for event in events],
        "times": [event.created_at for event in events],
    }
    await session.execute(_ADD, values)
