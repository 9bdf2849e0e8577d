"""The archiver runs by each organization's schedule, in its time zone. After missed runs, it runs once."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.records.archive import jobs


@pytest.mark.parametrize(
    ("schedule", "zone", "last", "now", "due"),
    [
        ("0 2 * * *", "UTC", "2026-03-01T02:00:10Z", "2026-03-02T01:59:59Z", False),
        ("0 2 * * *", "UTC", "2026-03-01T02:00:10Z", "2026-03-02T02:00:00Z", True),
        # The time in Berlin is one hour ahead.
        ("0 2 * * *", "Europe/Berlin", "2026-03-01T01:00:10Z", "2026-03-02T00:59:59Z", False),
        ("0 2 * * *", "Europe/Berlin", "2026-03-01T01:00:10Z", "2026-03-02T01:00:00Z", True),
        # The nights in which the clocks change: two o'clock does not exist, or occurs twice.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T01:30:05Z", "2026-03-29T02:00:00Z", True),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:05Z", "2026-10-25T01:29:00Z", False),
        # After a week without runs, one run is enough.
        ("0 2 * * *", "UTC", "2026-03-01T02:00:10Z", "2026-03-08T12:00:00Z", True),
        ("0 2 * * *", "UTC", "2026-03-08T12:00:00Z", "2026-03-08T12:01:00Z", False),
        # An organization without earlier runs waits for its scheduled hour.
        ("0 2 * * *", "UTC", None, "2026-03-08T12:00:00Z", False),
        ("0 2 * * *", "UTC", None, "2026-03-08T02:00:30Z", True),
        ("*/15 * * * *", "UTC", "2026-03-08T12:00:00Z", "2026-03-08T12:15:00Z", True),
    ],
)
def test_the_archiver_is_due_by_the_schedule(schedule: str, zone: str, last: str | None, now: str, due: bool) -> None:
    row: Any = SimpleNamespace(
        timezone=zone, retention_policy={"archiver_schedule": schedule},
        at=None if last is None else datetime.fromisoformat(last),
    )  # fmt: skip
    assert jobs.is_due(row, datetime.fromisoformat(now)) is due


async def test_the_job_archives_only_organizations_that_are_due(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, past, tools: Tools, archive: Settings
) -> None:
    for item in (tenant, other_tenant):
        await past(item, 100)
    schedule = {"archiver_schedule": "0 0 29 2 *"}
    await other_tenant.admin.client.put("/api/v1/admin/retention/policy", json=schedule)
    platform.sql("INSERT INTO archive_runs VALUES (%s, now() - interval '2 days', 'success', 0)", [tenant.id])
    platform.sql("INSERT INTO archive_runs VALUES (%s, now(), 'success', 0)", [other_tenant.id])
    await jobs.archive(msgspec.structs.replace(tools, settings=archive))
    text = "SELECT rows FROM archive_runs WHERE tenant_id = %s"
    assert platform.sql(text, [tenant.id]) == [(3,)]
    assert platform.sql(text, [other_tenant.id]) == [(0,)]


async def test_a_removed_user_is_anonymized_without_waiting_for_the_schedule(
    platform: RunningPlatform, tenant: Tenant, past, tools: Tools, archive: Settings, run, ask
) -> None:
    await past(tenant, 100)
    run(tenant)
    platform.sql("UPDATE archive_runs SET at = now() WHERE tenant_id = %s", [tenant.id])
    for person in (tenant.user.id, uuid4()):
        platform.sql("INSERT INTO archive_forgets VALUES (%s, %s)", [tenant.id, person])
    await jobs.archive(msgspec.structs.replace(tools, settings=archive))
    assert ask(tenant, "SELECT actor_id FROM audit_events") == [{"actor_id": None}]
    assert platform.sql("SELECT count(*) FROM archive_forgets WHERE tenant_id = %s", [tenant.id]) == [(0,)]
