"""Which notices wait: all queries of whoever notes and tells them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

#: Seconds until what was not taken is told again.
LEASE: Final = 60.0
BATCH: Final = 200

# In order, as whoever locks several rows must.
_ADD: Final = text(
    "INSERT INTO portal_notices (tenant_id, type, subject_id, message)"
    " SELECT tenant_id, 'dead_letter', id,"
    " format('Deliveries of the webhook \"%s\" have failed for good, the last of them at %s.', left(name, 200),"
    " to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24\\:MI\\:SS\"Z\"'))"
    " FROM webhooks WHERE id = ANY(CAST(:webhooks AS uuid[])) ORDER BY tenant_id, id"
    " ON CONFLICT (tenant_id, type, subject_id) DO UPDATE SET message = excluded.message, due_at = clock_timestamp()"
)
_TAKE: Final = text(
    "UPDATE portal_notices n SET due_at = clock_timestamp() + make_interval(secs => :lease)"
    " FROM (SELECT tenant_id, type, subject_id FROM portal_notices WHERE due_at <= now()"
    " ORDER BY due_at LIMIT :most FOR UPDATE SKIP LOCKED) due"
    " WHERE (n.tenant_id, n.type, n.subject_id) = (due.tenant_id, due.type, due.subject_id)"
    " RETURNING n.tenant_id, n.type, n.subject_id, n.message, n.due_at"
)
# One that was noted again meanwhile has another time.
_DONE: Final = text(
    "DELETE FROM portal_notices n USING unnest(CAST(:tenants AS uuid[]), CAST(:types AS text[]),"
    " CAST(:subjects AS uuid[]), CAST(:times AS timestamptz[])) AS t (tenant_id, type, subject_id, due_at)"
    " WHERE (n.tenant_id, n.type, n.subject_id, n.due_at) = (t.tenant_id, t.type, t.subject_id, t.due_at)"
)


class Notice(NamedTuple):
    tenant_id: UUID
    type: str
    subject_id: UUID
    message: str
    due_at: datetime


async def add(session: AsyncSession, webhooks: Iterable[UUID]) -> None:
    """Of webhooks with dead letters, in the transaction that makes them."""
    if wanted := list(set(webhooks)):
        await session.execute(_ADD, {"webhooks": wanted})


async def take(session: AsyncSession) -> Sequence[Notice]:
    """What is due, for a minute: whoever takes it tells it, or it is due again."""
    notices = [Notice(*row) for row in await session.execute(_TAKE, {"lease": LEASE, "most": BATCH})]
    await session.commit()
    return notices


async def done(session: AsyncSession, notices: Sequence[Notice]) -> None:
    values = {
        "tenants": [each.tenant_id for each in notices],
        "types": [each.type for each in notices],
        "subjects": [each.subject_id for each in notices],
        "times": [each.due_at for each in notices],
    }
    await session.execute(_DONE, values)
    await session.commit()
