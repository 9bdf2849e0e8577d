"""Jobs without a platform: queueing and execution."""

import asyncio
import time
from uuid import UUID

from tests.support.portal import Org, RunningPortal

from gatehouse.portal import jobs
from gatehouse.portal.organizations.jobs import update_entitlements


async def until(portal: RunningPortal, job_id: UUID, status: str) -> None:
    deadline = time.monotonic() + 60
    while portal.sql("SELECT status FROM jobs WHERE id = %s", [job_id]) != [(status,)]:
        assert time.monotonic() < deadline, portal.sql("SELECT * FROM jobs WHERE id = %s", [job_id])
        await asyncio.sleep(0.02)


async def test_without_a_platform_the_status_is_unknown_and_the_job_has_the_reason(
    portal: RunningPortal, org: Org
) -> None:
    ((job_id,),) = portal.sql("SELECT id FROM jobs WHERE org_id = %s", [org.id])
    await until(portal, job_id, "failed")
    assert portal.sql("SELECT error FROM jobs WHERE id = %s", [job_id]) == [("PLATFORM_URL is not set",)]
    assert (await org.client.get(org.path)).json()["provisioning_status"] == "unknown"
    repeated = await portal.admin.post(f"{org.path}/provision")
    assert (repeated.status_code, repeated.json()["org"]["provisioning_status"]) == (202, "provisioning")
    await until(portal, UUID(repeated.json()["provisioning_job_id"]), "failed")


async def test_a_rolled_back_change_queues_nothing(portal: RunningPortal, org: Org) -> None:
    async with portal.host.database.tenant(org.id) as session:
        job_id = await jobs.queue(session, update_entitlements, org.id)
    assert portal.sql("SELECT 1 FROM jobs WHERE id = %s", [job_id]) == []


async def test_one_waiting_job_is_sufficient_for_all_changes(portal: RunningPortal, org: Org) -> None:
    async with portal.host.database.tenant(org.id) as session:
        first = await jobs.queue(session, update_entitlements, org.id)
        assert await jobs.queue(session, update_entitlements, org.id) == first
        await session.commit()
    await until(portal, first, "done")


async def test_the_job_of_a_killed_worker_runs_again_after_its_lease(portal: RunningPortal, org: Org) -> None:
    ((provisioning,),) = portal.sql("SELECT id FROM jobs WHERE org_id = %s", [org.id])
    await until(portal, provisioning, "failed")
    job_id = UUID(int=org.id.int ^ 1)
    portal.sql(
        "INSERT INTO jobs (id, kind, org_id, lane, status, leased_until)"
        " VALUES (%s, 'entitlement_update', %s, %s, 'running', now() + interval '1 second')",
        [job_id, org.id, str(org.id)],
    )
    async with portal.host.database.tenant(org.id) as session:
        behind = await jobs.queue(session, update_entitlements, org.id)
        await session.commit()
    portal.host.jobs.wake()
    await asyncio.sleep(0.3)
    # The other jobs of the organization wait for this job.
    assert portal.sql("SELECT status FROM jobs WHERE id = %s", [behind]) == [("queued",)]
    await until(portal, job_id, "done")
    await until(portal, behind, "done")


async def test_the_result_of_a_job_is_stored_when_the_database_is_available_again(
    portal: RunningPortal, org: Org
) -> None:
    """The result is not delayed until the lease of the living worker expires, because the organization's other jobs
    wait for it."""
    ((provisioning,),) = portal.sql("SELECT id FROM jobs WHERE org_id = %s", [org.id])
    await until(portal, provisioning, "failed")
    # Run it in a thread, because it waits for transactions of this loop.
    await asyncio.to_thread(
        portal.sql,
        "CREATE FUNCTION going_away() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'shutting down' USING ERRCODE = 'admin_shutdown'; END $$;"
        "CREATE TRIGGER going_away BEFORE UPDATE ON jobs FOR EACH ROW"
        f" WHEN (OLD.status = 'running' AND OLD.org_id = '{org.id}') EXECUTE FUNCTION going_away()",
    )
    try:
        async with portal.host.database.tenant(org.id) as session:
            job_id = await jobs.queue(session, update_entitlements, org.id)
            await session.commit()
        portal.host.jobs.wake()
        await until(portal, job_id, "running")
        await asyncio.sleep(1.5)
        await until(portal, job_id, "running")
    finally:
        await asyncio.to_thread(portal.sql, "DROP FUNCTION going_away CASCADE")
    await until(portal, job_id, "done")
