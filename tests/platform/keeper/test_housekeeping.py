"""Housekeeping: obsolete rows, partitions, and jobs of an earlier version."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.tools import tools_of

from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.keeper import duties, housekeeping


@pytest.fixture
def tools(platform: RunningPlatform) -> Tools:
    return tools_of(platform.host)


async def test_housekeeping_removes_only_expired_rows(platform: RunningPlatform, tenant: Tenant, tools: Tools) -> None:
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
    for table, days in (("usage_minutes", 7), ("usage_minutes", 8), ("usage_hours", 31), ("usage_hours", 32)):
        column = table.removeprefix("usage_").removesuffix("s")
        platform.sql(
            f"INSERT INTO {table} (tenant_id, {column}, requests, errors, blocked, dlp_triggers, cost_usd, latency)"
            " VALUES (%s, now() - make_interval(days => %s), 1, 0, 0, 0, 0, '{}')",
            [tenant.id, days],
        )
    for days in (31, 32):
        platform.sql(
            "INSERT INTO alias_hours (tenant_id, hour, model_alias, shadow, requests, errors, blocked, dlp_triggers,"
            " cost_usd) VALUES (%s, now() - make_interval(days => %s), 'fast', false, 1, 0, 0, 0, 0)",
            [tenant.id, days],
        )
    before = platform.sql("SELECT count(*) FROM sessions")
    await housekeeping.prune(tools)
    for table in ("usage_minutes", "usage_hours", "alias_hours"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [tenant.id]) == [(1,)]
    await housekeeping.ensure_partitions(tools)
    assert platform.sql("SELECT id FROM nodes WHERE id = ANY(%s)", [[dead, alive]]) == [(alive,)]
    assert platform.sql("SELECT subject FROM revocations WHERE subject = ANY(%s)", [[gone, kept]]) == [(kept,)]
    assert platform.sql("SELECT count(*) FROM changes WHERE revision = -7") == [(0,)]
    assert platform.sql("SELECT count(*) FROM sessions") == before
    ahead = (datetime.now(UTC).replace(day=1) + timedelta(days=63)).strftime("audit_events_%Y%m")
    assert platform.sql("SELECT to_regclass(%s) IS NOT NULL", [ahead]) == [(True,)]


async def test_budget_periods_of_long_ago_are_pruned(platform: RunningPlatform, tools: Tools, tenant: Tenant) -> None:
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


async def test_ended_jobs_are_pruned_after_a_week(platform: RunningPlatform, tools: Tools) -> None:
    rows = {
        uuid4(): (status, days)
        for status in ("queued", "running", "done", "failed") for days in (6, 8)
    }  # fmt: skip
    for job_id, (status, days) in rows.items():
        platform.sql(
            "INSERT INTO jobs (id, kind, lane, status, updated_at) VALUES (%s, 'tests.prune', %s, %s,"
            " now() - make_interval(days => %s))",
            [job_id, str(job_id), status, days],
        )
    await housekeeping.prune(tools)
    left = {rows[job_id] for (job_id,) in platform.sql("DELETE FROM jobs WHERE kind = 'tests.prune' RETURNING id")}
    assert left == set(rows.values()) - {("done", 8), ("failed", 8)}


async def test_a_new_installation_has_no_jobs_to_take_over(platform: RunningPlatform, tools: Tools) -> None:
    await housekeeping.take_over_jobs(tools)
    assert platform.sql("SELECT to_regclass('procrastinate_jobs')") == [(None,)]


def test_every_module_with_jobs_is_imported_by_the_worker(tools: Tools) -> None:
    duties.job_worker(tools)
    assert set(JOBS.kinds) == {
        "access.anonymise", "access.mail", "access.test_mail", "archive.archiver", "keeper.partitions", "keeper.prune",
        "keeper.take_over_jobs", "mcp.revoke_tokens", "mcp.refresh_tools", "spending.invoices", "webhooks.prune",
    }  # fmt: skip
