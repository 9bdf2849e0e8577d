"""What the platform has to know of outposts, and what organizations are told of them (decisions 8, Outposts, Wires)."""

import time
from typing import Any, Final

from sqlalchemy import text

from gatehouse.portal import authorities, jobs
from gatehouse.portal.identity import OrgId
from gatehouse.portal.jobs import Tools, duty, job

#: Serial numbers of one outpost that the platform takes; who renews more often loses the oldest.
_MOST_SERIALS: Final = 10
#: Seconds for which nobody is called stale: while the portal was away, nobody could be seen.
_GRACE: Final = 90.0
_BEGAN: Final = time.monotonic()

_OUTPOSTS: Final = text(
    "SELECT o.id AS org_id, o.tenant_id, p.id AS outpost_id, c.serials FROM organizations o"
    " JOIN outposts p ON p.org_id = o.id AND p.revoked_at IS NULL,"
    " LATERAL (SELECT array_agg(serial) AS serials FROM (SELECT serial FROM outpost_certificates"
    " WHERE outpost_id = p.id AND good_until > now() ORDER BY issued_at DESC LIMIT :most) good) c"
    " WHERE o.status = 'active' AND o.provisioning_status = 'active' AND c.serials IS NOT NULL ORDER BY p.id"
)
# Whoever was told of it, and has put it aside, is told again when it was seen in between.
_STALE: Final = text(
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
# One that has just been told, or is about to be, serves.
_TOLD: Final = text(
    "SELECT EXISTS (SELECT FROM jobs WHERE kind = 'trust_push'"
    " AND (status IN ('done', 'failed') AND updated_at > now() - interval '25 seconds' OR status = 'running'))"
)
_FORGET: Final = text(
    "DELETE FROM jobs WHERE kind = 'trust_push' AND status IN ('done', 'failed')"
    " AND updated_at < now() - interval '1 hour'"
)


@job("trust_push")
async def push_trust(tools: Tools, org_id: OrgId | None) -> None:
    """The platform believes whom the portal believes: everything, each time."""
    if not tools.platform.configured:
        return
    async with tools.database.service() as session:
        # One look at all of it: a certificate is never told without its authority.
        await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        trusted = (await session.execute(authorities.TRUSTED)).all()
        rows = (await session.execute(_OUTPOSTS, {"most": _MOST_SERIALS})).all()
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
    await tools.platform.call("PUT", "/v1/platform/outpost-trust", body)


@duty("trust in outposts", 5.0)
async def tell_regularly(tools: Tools) -> None:
    """Time makes certificates bad, and an operator may have told the platform something else."""
    if not tools.platform.configured:
        return
    async with tools.database.service() as session:
        if not (await session.execute(_TOLD)).scalar_one():
            await session.execute(_FORGET)
            await jobs.queue(session, push_trust, None)
            await session.commit()


@duty("stale outposts", 10.0)
async def watch(tools: Tools) -> None:
    if time.monotonic() - _BEGAN >= _GRACE:
        await find_stale(tools)


async def find_stale(tools: Tools) -> None:
    """Tells organizations of outposts that are not seen."""
    async with tools.database.service() as session:
        await session.execute(_STALE)
        await session.commit()
