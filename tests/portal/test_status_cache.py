"""A status that is read during a change is not cached."""

import asyncio

import psycopg
from tests.support.portal import Org, RunningPortal

from gatehouse.foundation.identity import TenantId


async def test_what_was_read_before_a_change_is_not_kept_after_it(portal: RunningPortal, org: Org) -> None:
    org_id, standings = TenantId(org.id), portal.host.token_statuses
    standings.invalidate()
    async with await psycopg.AsyncConnection.connect(portal.installed.owner_url) as connection:
        await connection.execute("LOCK TABLE portal.organizations IN ACCESS EXCLUSIVE MODE")
        reading = asyncio.create_task(standings.of(org_id))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'portal.organizations'::regclass"
        async with asyncio.timeout(20):
            while (await (await connection.execute(waiting)).fetchone()) == (0,):
                await asyncio.sleep(0.01)
        # The response to the change is sent while another request reads the status.
        standings.invalidate()
        await connection.commit()
    before = await reading
    portal.sql("UPDATE organizations SET plan_tier = 'starter' WHERE id = %s", [org.id])
    now = await standings.of(org_id)
    assert before is not None
    assert now is not None
    assert (before.plan, now.plan) == ("enterprise", "starter")
