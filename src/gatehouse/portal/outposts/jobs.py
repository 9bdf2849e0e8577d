"""Sends valid certificates to the platform, and notifies organizations of stale outposts."""

import time
from typing import Any, Final

from sqlalchemy import text

from gatehouse.portal import jobs
from gatehouse.portal.identity import OrgId
from gatehouse.portal.jobs import JobContext, job
from gatehouse.portal.keys import authorities

#: Maximum number of serial numbers that the platform accepts for one outpost. If there are more valid certificates, the
#: oldest ones are not sent.
_MAX_SERIALS: Final = 10
#: No outpost is reported as stale for this time after the start, because the portal could not receive heartbeats while
#: it did not run.
_GRACE_SECONDS: Final = 90.0
_STARTED_AT: Final = time.monotonic()

_VALID_CERTIFICATES: Final = text(
    "SELECT o.id AS org_id, o.tenant_id, p.id AS outpost_id, c.serials FROM organizations o"
    " JOIN outposts p ON p.org_id = o.id AND p.revoked_at IS NULL,"
    " LATERAL (SELECT array_agg(serial) AS serials FROM (SELECT serial FROM outpost_certificates"
    " WHERE outpost_id = p.id AND good_until > now() ORDER BY issued_at DESC LIMIT :max_rows) good) c"
    " WHERE o.status = 'active' AND o.provisioning_status = 'active' AND c.serials IS NOT NULL ORDER BY p.id"
)
# After a notification has been resolved by hand, the outpost is reported again only if it has sent a heartbeat since.
_NOTIFY_STALE: Final = text(
    "INSERT INTO notifications (id, org_id, type, severity, message, subject_id)"
    " SELECT gen_random_uuid(), p.org_id, 'outpost_stale', 'warning', CASE WHEN p.last_seen_at IS NULL"
    " THEN format('The outpost %s has never been seen.', p.outpost_name)"
    " ELSE format('The outpost %s was last seen at %s.', p.outpost_name,"
    " to_char(p.last_seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24\\:MI\\:SS\"Z\"')) END, p.id"
    " FROM outposts p JOIN organizations o ON o.id = p.org_id AND o.status = 'active'"
    " WHERE p.revoked_at IS NULL AND coalesce(p.last_seen_at, p.created_at) < now() - interval '5 minutes'"
    " AND NOT EXISTS (SELECT FROM notifications n WHERE n.subject_id = p.id AND n.type = 'outpost_stale'"
    " AND n.created_at > coalesce(p.last_seen_at, p.created_at))"
    " ON CONFLICT (org_id, type, subject_id) WHERE resolved_at IS NULL DO NOTHING"
)
# A push that is running, or that ended less than 25 seconds ago, is sufficient.
_PUSHED_RECENTLY: Final = text(
    "SELECT EXISTS (SELECT FROM jobs WHERE kind = 'trust_push'"
    " AND (status IN ('done', 'failed') AND updated_at > now() - interval '25 seconds' OR status = 'running'))"
)
_DELETE_OLD_PUSHES: Final = text(
    "DELETE FROM jobs WHERE kind = 'trust_push' AND status IN ('done', 'failed')"
    " AND updated_at < now() - interval '1 hour'"
)


@job("trust_push")
async def push_trust(context: JobContext, org_id: OrgId | None) -> None:
    """Sends the complete list of trusted authorities, organizations and outposts' certificates to the platform."""
    if not context.platform.configured:
        return
    async with context.database.service() as session:
        # Both queries read the same snapshot, so that no certificate is sent without its authority.
        await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        trusted = (await session.execute(authorities.TRUSTED_AUTHORITIES)).all()
        rows = (await session.execute(_VALID_CERTIFICATES, {"max_rows": _MAX_SERIALS})).all()
    body: dict[str, Any] = {
        "ca_certificates": [row.certificate for row in trusted],
        "organizations": [
            {"org_id": str(org), "tenant_id": str(tenant)}
            for org, tenant in {row.org_id: row.tenant_id for row in rows}.items()
        ],
        "outposts": [
            {"outpost_id": str(row.outpost_id), "org_id": str(row.org_id), "serials": row.serials} for row in rows
        ],
    }
    await context.platform.call("PUT", "/v1/platform/outpost-trust", body)


async def push_regularly(context: JobContext) -> None:
    """Queues a push if there was none recently. Called periodically, because certificates expire, and because an
    operator may have changed the platform's list."""
    if not context.platform.configured:
        return
    async with context.database.service() as session:
        if not (await session.execute(_PUSHED_RECENTLY)).scalar_one():
            await session.execute(_DELETE_OLD_PUSHES)
            await jobs.queue(session, push_trust, None)
            await session.commit()


async def watch_outposts(context: JobContext) -> None:
    if time.monotonic() - _STARTED_AT >= _GRACE_SECONDS:
        await find_stale(context)


async def find_stale(context: JobContext) -> None:
    """Notifies organizations of outposts that have sent no heartbeat for five minutes."""
    async with context.database.service() as session:
        await session.execute(_NOTIFY_STALE)
        await session.commit()
