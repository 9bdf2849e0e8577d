"""The queue of notices to the portal."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

#: Time after which a notice that the portal did not accept is due again.
LEASE_SECONDS: Final = 60.0
BATCH_NOTICES: Final = 200

# The rows are ordered, so that transactions lock them in the same order and cannot deadlock.
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
    " ORDER BY due_at LIMIT :max_rows FOR UPDATE SKIP LOCKED) due"
    " WHERE (n.tenant_id, n.type, n.subject_id) = (due.tenant_id, due.type, due.subject_id)"
    " RETURNING n.tenant_id, n.type, n.subject_id, n.message, n.due_at"
)
# A notice that was queued again in the meantime has another `due_at`, so it stays.
_DONE: Final = text(
    "DELETE FROM portal_notices n USING unnest(CAST(:tenants AS uuid[]), CAST(:types AS text[]),"
    " CAST(:subjects AS uuid[]), CAST(:times AS timestamptz[])) AS t (tenant_id, type, subject_id, due_at)"
    " WHERE (n.tenant_id, n.type, n.subject_id, n.due_at) = (t.tenant_id, t.type, t.subject_id, t.due_at)"
)


class PortalNotice(NamedTuple):
    tenant_id: UUID
    type: str
    subject_id: UUID
    message: str
    due_at: datetime


async def add(session: AsyncSession, webhooks: Iterable[UUID]) -> None:
    """Queue a notice for each of these webhooks. Call this in the transaction that makes their dead letters."""
    if webhook_ids := list(set(webhooks)):
        await session.execute(_ADD, {"webhooks": webhook_ids})


async def take(session: AsyncSession) -> Sequence[PortalNotice]:
    """Lease the notices that are due. Notices that are not removed with `done` are due again when the lease ends."""
    notices = [
        PortalNotice(*row) for row in await session.execute(_TAKE, {"lease": LEASE_SECONDS, "max_rows": BATCH_NOTICES})
    ]
    await session.commit()
    return notices


async def done(session: AsyncSession, notices: Sequence[PortalNotice]) -> None:
    """Remove notices that the portal has accepted."""
    values = {
        "tenants": [notice.tenant_id for notice in notices],
        "types": [notice.type for notice in notices],
        "subjects": [notice.subject_id for notice in notices],
        "times": [notice.due_at for notice in notices],
    }
    await session.execute(_DONE, values)
    await session.commit()
