"""A status that is read during a change is not cached."""

import asyncio

import psycopg
from tests.support.portal import Org, RunningPortal

from gatehouse.foundation.identity import TenantId


async def test_a_status_that_was_read_before_a_change_is_not_cached(portal: RunningPortal, org: Org) -> None:
    org_id, statuses = TenantId(org.id), portal.host.token_statuses
    statuses.invalidate()
    async with await psycopg.AsyncConnection.connect(portal.installed.owner_url) as connection:
        await connection.execute("LOCK TABLE portal.organizations IN ACCESS EXCLUSIVE MODE")
        reading = asyncio.create_task(statuses.of(org_id))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'portal.organizations'::regclass"
        async with asyncio.timeout(60):
            while (await (await connection.execute(waiting)).fetchone()) == (0,):
                await asyncio.sleep(0.01)
        # `invalidate` is called while `reading` waits for the lock. The commit only releases the lock, so `reading`
        # returns the old plan, which must not be cached.
        statuses.invalidate()
        await connection.commit()
    before = await reading
    portal.sql("UPDATE organizations SET plan_tier = 'starter' WHERE id = %s", [org.id])
    now = await statuses.of(org_id)
    assert before is not None
    assert now is not None
    assert (before.plan, now.plan) == ("enterprise", "starter")
