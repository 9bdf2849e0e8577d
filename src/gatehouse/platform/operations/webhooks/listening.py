"""Turns events of the outbox into deliveries, in the transaction that marks the events as dispatched."""

from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.changes.outbox import Event

# The positions of the deliveries have the order of the events.
_ADD: Final = text(
    "INSERT INTO webhook_deliveries (id, tenant_id, webhook_id, event_type, payload)"
    " SELECT gen_random_uuid(), e.tenant_id, w.id, e.event_type,"
    " CASE WHEN e.event_type = 'dlp_trigger' AND NOT w.include_logged THEN e.payload - 'logged' ELSE e.payload END"
    " FROM unnest(CAST(:tenants AS uuid[]),"
    " CAST(:types AS text[]), CAST(:payloads AS jsonb[])) WITH ORDINALITY AS e (tenant_id, event_type, payload, nth)"
    " JOIN webhooks w ON w.tenant_id = e.tenant_id AND w.enabled AND e.event_type = ANY(w.events)"
    " AND (w.include_logged OR e.event_type <> 'dlp_trigger' OR e.payload ->> 'action_taken' <> 'LOG_ONLY')"
    " JOIN tenants t ON t.id = w.tenant_id AND t.deleted_at IS NULL ORDER BY e.nth, w.id RETURNING webhook_id"
)
# A turn in progress misses no delivery, because it queries again before it ends. Either the turn waits for the lock of
# this statement and then sees the new deliveries, or this statement waits for the end of the turn. The rows are
# ordered, so that transactions lock them in the same order and cannot deadlock.
_WAKE: Final = text(
    "INSERT INTO webhook_queues AS target (webhook_id, tenant_id, due_at)"
    " SELECT id, tenant_id, now() FROM webhooks WHERE id = ANY(CAST(:webhooks AS uuid[])) ORDER BY id"
    " ON CONFLICT (webhook_id) DO UPDATE SET due_at = coalesce(target.due_at, excluded.due_at)"
)


async def enqueue(session: AsyncSession, events: Sequence[Event]) -> None:
    """Add a delivery of each event for every webhook that subscribes to the event."""
    values: dict[str, Any] = {
        "tenants": [event.tenant_id for event in events],
        "types": [event.event_type for event in events],
        "payloads": [event.payload for event in events],
    }
    webhooks = {webhook_id for (webhook_id,) in await session.execute(_ADD, values)}
    if webhooks:
        await wake(session, webhooks)


async def wake(session: AsyncSession, webhooks: Collection[UUID]) -> None:
    """Make the turns of webhooks due, and lock them until the transaction ends."""
    await session.execute(_WAKE, {"webhooks": list(webhooks)})
