"""What an event means to webhooks: a delivery for each that wants it, in the transaction that marks it dispatched."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.outbox import Event

# The order of events is the order of positions.
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
# Whose turn is under way looks again before it ends: it waits for this lock, or this waits for its end. In order, as
# whoever locks several rows must.
_WAKE: Final = text(
    "INSERT INTO webhook_queues AS held (webhook_id, tenant_id, due_at)"
    " SELECT id, tenant_id, now() FROM webhooks WHERE id = ANY(CAST(:webhooks AS uuid[])) ORDER BY id"
    " ON CONFLICT (webhook_id) DO UPDATE SET due_at = coalesce(held.due_at, excluded.due_at)"
)


async def enqueue(session: AsyncSession, events: Sequence[Event]) -> None:
    values: dict[str, Any] = {
        "tenants": [event.tenant_id for event in events],
        "types": [event.event_type for event in events],
        "payloads": [event.payload for event in events],
    }
    webhooks = {webhook_id for (webhook_id,) in await session.execute(_ADD, values)}
    if webhooks:
        await session.execute(_WAKE, {"webhooks": list(webhooks)})
