"""The files of a month are joined into one file with the same records."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.platform.records.archive.conftest import NOW
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings
from gatehouse.platform.records.archive.storage import contents, files

#: The first of four days of a past month.
FIRST = (NOW - timedelta(days=170)).replace(day=5, hour=12)
JOINING_DAY = FIRST + timedelta(days=95 + 31)


def listed(platform: RunningPlatform, tenant: Tenant, records: str) -> list[tuple[str, int]]:
    query = "SELECT path, rows FROM archive_files WHERE tenant_id = %s AND records = %s ORDER BY first_at"
    return [tuple(row) for row in platform.sql(query, [tenant.id, records])]


@pytest.fixture
async def daily(platform: RunningPlatform, tenant: Tenant, past: Callable[..., Any], run) -> Tenant:
    """An organization with records of four days, each kind of record in four files."""
    for day in range(4):
        at = FIRST + timedelta(days=day)
        await past(tenant, (NOW - at) / timedelta(days=1))
        assert run(tenant, at + timedelta(days=92)) == 3
    assert len(listed(platform, tenant, "usage_records")) == 4
    return tenant


async def test_a_months_files_are_joined_when_the_whole_month_left_the_hot_window(
    platform: RunningPlatform, daily: Tenant, run, ask, breaks, archive: Settings
) -> None:
    rows = {
        records: ask(daily, f"SELECT * FROM {records} ORDER BY timestamp, id")
        for records in ("audit_events", "usage_records", "dlp_events")
    }
    run(daily, JOINING_DAY)
    for records, before in rows.items():
        ((path, count),) = listed(platform, daily, records)
        assert (count, path.startswith(f"warm/{records}/{daily.id}/")) == (4, True)
        assert ask(daily, f"SELECT * FROM {records} ORDER BY timestamp, id") == before
    assert breaks(daily) == []
    lying = sorted(path for path in Path(archive.gatehouse_home / "archive").rglob("*.parquet"))
    assert len(lying) == 3
    run(daily, JOINING_DAY)
    assert sorted(Path(archive.gatehouse_home / "archive").rglob("*.parquet")) == lying


async def test_without_a_cold_window_files_are_not_joined_and_are_removed_on_their_day(
    platform: RunningPlatform, daily: Tenant, run
) -> None:
    policy = {"warm_retention_days": 60, "cold_retention_years": 0}
    await daily.admin.client.put("/api/v1/admin/retention/policy", json=policy)
    run(daily, JOINING_DAY)
    assert len(listed(platform, daily, "usage_records")) == 4
    run(daily, FIRST + timedelta(days=152))
    kept = "SELECT count(*) FROM archive_files WHERE tenant_id = %s AND records = 'usage_records' AND state = 'kept'"
    assert platform.sql(kept, [daily.id]) == [(2,)]


async def test_no_joined_file_exceeds_the_maximum_size(
    platform: RunningPlatform, daily: Tenant, run, ask, breaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_FILE_ROWS", 3)
    monkeypatch.setattr(files, "GROUP_ROWS", 2)
    run(daily, JOINING_DAY)
    assert [count for _, count in listed(platform, daily, "audit_events")] == [3, 1]
    assert [row["sequence"] for row in ask(daily, "SELECT sequence FROM audit_events ORDER BY 1")] == [1, 2, 3, 4]
    assert breaks(daily) == []


async def test_files_with_and_without_later_columns_are_joined(
    platform: RunningPlatform, tenant: Tenant, past: Callable[..., Any], run, ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = contents._COLUMNS["usage_records"]
    earlier = {
        name: kind
        for name, kind in kinds.items()
        if name not in {"end_user", "tags", "error_code", "attempts", "attempt_ms"}
    }
    for day, columns in enumerate((earlier, kinds)):
        at = FIRST + timedelta(days=day)
        await past(tenant, (NOW - at) / timedelta(days=1), end_user="customer-1", tags=("a",))
        monkeypatch.setitem(contents._COLUMNS, "usage_records", columns)
        assert run(tenant, at + timedelta(days=92)) == 3
    rows = "SELECT status, end_user, tags FROM usage_records ORDER BY timestamp"
    stored = [
        {"status": "success", "end_user": None, "tags": None},
        {"status": "success", "end_user": "customer-1", "tags": '["a"]'},
    ]
    assert ask(tenant, rows) == stored
    run(tenant, JOINING_DAY)
    assert [count for _, count in listed(platform, tenant, "usage_records")] == [2]
    assert ask(tenant, rows) == stored


async def test_a_changed_file_is_not_joined_with_others(
    platform: RunningPlatform, daily: Tenant, run, breaks, archive: Settings
) -> None:
    (path, _), *_ = listed(platform, daily, "audit_events")
    file = archive.gatehouse_home / "archive" / path
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    run(daily, JOINING_DAY)
    assert platform.sql("SELECT status FROM archive_runs WHERE tenant_id = %s", [daily.id]) == [("failed",)]
    assert len(listed(platform, daily, "audit_events")) == 4
    assert breaks(daily)[0].sequence == 1
