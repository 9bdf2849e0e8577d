"""Background jobs: queued with the change that wants them, run once, tried again, brought back from the dead."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.background import jobs
from gatehouse.platform.background.jobs import (
    Tools,
    defer,
    job,
    scheduled,
)
from gatehouse.platform.changes.change import Change
from gatehouse.platform.keeper import duties, housekeeping

ran: list[str] = []
failing: set[str] = set()


@job("tests.note")
async def note(tools: Tools, *, tag: str) -> None:
    assert tools.database is not None
    ran.append(tag)
    if tag in failing:
        failing.discard(tag)
        raise RuntimeError("once")


@scheduled("tests.yearly", "0 0 1 1 *")
async def yearly(tools: Tools) -> None:
    ran.append("yearly")


@pytest.fixture
def tools(platform: RunningPlatform) -> Tools:
    host = platform.host
    return Tools(
        settings=host.settings, database=host.database, sealer=host.sealer, outbound=host.outbound, clock=host.clock,
        receivers=host.receivers,
    )  # fmt: skip


@asynccontextmanager
async def working(tools: Tools) -> AsyncIterator[None]:
    task = asyncio.create_task(duties._run_jobs(tools))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool], patience: float = 15) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_a_committed_changes_job_runs_once_and_a_rolled_back_ones_never(
    platform: RunningPlatform, tenant: Tenant, tools: Tools
) -> None:
    committed, rolled_back, unfinished = (str(uuid4()) for _ in range(3))
    async with working(tools):
        async with platform.host.database.tenant(TenantId(tenant.id)) as session:
            change = Change(session, None, tenant_id=TenantId(tenant.id))
            await defer(change.session, note, tag=committed)
            await change.commit()
        async with platform.host.database.tenant(TenantId(tenant.id)) as session:
            await defer(session, note, tag=rolled_back)
            await session.rollback()
        async with platform.host.database.tenant(TenantId(tenant.id)) as session:
            await defer(session, note, tag=unfinished)
        await until(lambda: committed in ran)
        await asyncio.sleep(0.3)
    assert ran.count(committed) == 1
    assert not {rolled_back, unfinished} & set(ran)


async def test_a_job_that_fails_is_tried_again(platform: RunningPlatform, tools: Tools) -> None:
    tag = str(uuid4())
    failing.add(tag)
    async with working(tools):
        async with platform.host.database.service() as session:
            await defer(session, note, tag=tag)
            await session.commit()
        await until(lambda: ran.count(tag) == 2)


async def test_a_job_waits_for_its_time(platform: RunningPlatform, tools: Tools) -> None:
    tag = str(uuid4())
    async with working(tools):
        async with platform.host.database.service() as session:
            await defer(session, note, at=datetime.now(UTC) + timedelta(hours=1), tag=tag)
            await session.commit()
        await asyncio.sleep(0.3)
    assert tag not in ran


async def test_a_killed_workers_job_comes_back(platform: RunningPlatform, tools: Tools) -> None:
    tag = str(uuid4())
    async with platform.host.database.service() as session:
        job_id = await defer(session, note, tag=tag)
        await session.commit()
    _abandoned(platform, job_id)
    async with working(tools):
        await until(lambda: bool(jobs.app.job_manager.connector._async_pool))  # type: ignore[attr-defined]
        await housekeeping.retry_stalled(tools)
        await until(lambda: tag in ran)


async def test_a_killed_workers_scheduled_job_does_not_keep_the_next_run_waiting(
    platform: RunningPlatform, tools: Tools
) -> None:
    before = ran.count("yearly")
    _abandoned(platform, _queued(platform, "tests.yearly"))
    _queued(platform, "tests.yearly")
    async with working(tools):
        await until(lambda: bool(jobs.app.job_manager.connector._async_pool))  # type: ignore[attr-defined]
        await asyncio.sleep(0.3)
        assert ran.count("yearly") == before, "it waits for the one that a dead worker holds"
        await housekeeping.retry_stalled(tools)
        await until(lambda: ran.count("yearly") == before + 1)


async def test_a_worker_that_is_killed_while_it_brings_jobs_back_is_brought_back_itself(
    platform: RunningPlatform, tools: Tools
) -> None:
    job_id = _queued(platform, "keeper.stalled_jobs")
    _abandoned(platform, job_id)
    _queued(platform, "keeper.stalled_jobs")
    stuck = "SELECT 1 FROM procrastinate_jobs WHERE id = %s AND status = 'doing'"
    async with working(tools):
        await until(lambda: not platform.sql(stuck, [job_id]))


def _queued(platform: RunningPlatform, name: str) -> int:
    task = jobs.app.tasks[name]
    ((job_id,),) = platform.sql(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)"
        " VALUES ('default', %s, %s, %s, '{\"timestamp\": 1}') RETURNING id",
        [name, task.lock, task.queueing_lock],
    )
    return int(job_id)


def _abandoned(platform: RunningPlatform, job_id: int) -> None:
    """A worker took it, and was not heard of again."""
    (worker_id,) = platform.sql(
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour') RETURNING id"
    )[0]
    platform.sql("UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s WHERE id = %s", [worker_id, job_id])


async def test_housekeeping_removes_what_is_over_and_nothing_else(
    platform: RunningPlatform, tenant: Tenant, tools: Tools
) -> None:
    dead, alive, gone, kept = (uuid4() for _ in range(4))
    for node, age in ((dead, "2 hours"), (alive, "1 minute")):
        platform.sql(
            "INSERT INTO nodes (id, name, kind, pid, host, seen_at)"
            " VALUES (%s, 'n', 'test', 1, 'h', now() - %s::interval)",
            [node, age],
        )
    for subject, left in ((gone, "-1 minute"), (kept, "1 hour")):
        platform.sql(
            "INSERT INTO revocations (subject, kind, expires_at) VALUES (%s, 'session', now() + %s::interval)",
            [subject, left],
        )
    platform.sql(
        "INSERT INTO changes (revision, topic, key, at) VALUES (-7, 'x', %s, now() - interval '2 days')", [str(dead)]
    )
    for age in ("7 days", "8 days"):
        platform.sql(
            "INSERT INTO usage_minutes VALUES (%s, now() - %s::interval, 1, 0, 0, 0, 0, '{}')", [tenant.id, age]
        )
        platform.sql("INSERT INTO usage_hours VALUES (%s, now() - %s::interval, '{}')", [tenant.id, age])
    before = platform.sql("SELECT count(*) FROM sessions")
    await housekeeping.prune(tools)
    for table in ("usage_minutes", "usage_hours"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [tenant.id]) == [(1,)]
    await housekeeping.ensure_partitions(tools)
    assert platform.sql("SELECT id FROM nodes WHERE id = ANY(%s)", [[dead, alive]]) == [(alive,)]
    assert platform.sql("SELECT subject FROM revocations WHERE subject = ANY(%s)", [[gone, kept]]) == [(kept,)]
    assert platform.sql("SELECT count(*) FROM changes WHERE revision = -7") == [(0,)]
    assert platform.sql("SELECT count(*) FROM sessions") == before
    ahead = (datetime.now(UTC).replace(day=1) + timedelta(days=63)).strftime("audit_events_%Y%m")
    assert platform.sql("SELECT to_regclass(%s) IS NOT NULL", [ahead]) == [(True,)]


async def test_budgets_periods_that_are_long_over_are_pruned(
    platform: RunningPlatform, tools: Tools, tenant: Tenant
) -> None:
    kept: set[UUID] = set()
    gone: set[UUID] = set()
    for period, ended, expected in (
        ("1 minute", "1 day", kept), ("1 minute", "3 days", gone), ("1 day", "50 days", kept),
        ("1 day", "61 days", gone), ("31 days", "59 days", kept), ("31 days", "61 days", gone),
    ):  # fmt: skip
        budget_id = uuid4()
        expected.add(budget_id)
        platform.sql(
            "WITH p AS (INSERT INTO budget_periods (budget_id, period_start, tenant_id, period_end) VALUES (%(id)s,"
            " now() - %(ended)s::interval - %(period)s::interval, %(tenant)s, now() - %(ended)s::interval)"
            " RETURNING budget_id, period_start, tenant_id) INSERT INTO budget_leases (budget_id, period_start,"
            " tenant_id, writer_id) SELECT budget_id, period_start, tenant_id, gen_random_uuid() FROM p",
            {"id": budget_id, "ended": ended, "period": period, "tenant": tenant.id},
        )
    await housekeeping.prune(tools)
    for table in ("budget_periods", "budget_leases"):
        rows = platform.sql(f"SELECT budget_id FROM {table} WHERE tenant_id = %s", [tenant.id])
        assert {budget_id for (budget_id,) in rows} == kept
    assert gone
