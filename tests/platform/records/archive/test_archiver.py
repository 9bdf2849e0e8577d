"""Records older than the hot window are archived, each once. They are removed from the database only after they are
stored."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.platform.records.archive.conftest import NOW
from tests.support.platform import RunningPlatform, Tenant
from tests.support.tools import tools_of

from gatehouse.foundation.settings import Settings
from gatehouse.platform.records.archive import archiver
from gatehouse.platform.records.archive.archiver import Archiver
from gatehouse.platform.records.archive.jobs import ArchiverFailures
from gatehouse.platform.records.archive.storage import files
from gatehouse.platform.records.archive.storage.contents import RECORDS
from gatehouse.platform.records.archive.storage.places import Folder, archive_storage
from gatehouse.platform.records.archive.storage.writer import ArchiverRunning

Ask = Callable[..., list[dict[str, Any]]]


def counted(platform: RunningPlatform, tenant: Tenant, table: str, what: str = "count(*)") -> Any:
    return platform.sql(f"SELECT {what} FROM {table} WHERE tenant_id = %s", [tenant.id])[0][0]


def status(platform: RunningPlatform, tenant: Tenant) -> Any:
    return platform.sql("SELECT status, rows FROM archive_runs WHERE tenant_id = %s", [tenant.id])[0]


async def test_only_records_older_than_the_hot_window_are_archived(
    platform: RunningPlatform, tenant: Tenant, past, run, ask: Ask
) -> None:
    old = await past(tenant, 200, 100, 95)
    hot = await past(tenant, 10, 0.1)
    assert run(tenant) == 9
    for records in ("usage_records", "audit_events"):
        kept = platform.sql(f"SELECT id FROM {records} WHERE tenant_id = %s ORDER BY timestamp", [tenant.id])
        assert [row[0] for row in kept] == hot
        archived = ask(tenant, f"SELECT id FROM {records} ORDER BY timestamp")
        assert [row["id"] for row in archived] == list(map(str, old))
    assert counted(platform, tenant, "dlp_events") == 2
    assert ask(tenant, "SELECT count(*) AS n, sum(match_count) AS m FROM dlp_events") == [{"n": 3, "m": 6}]
    assert run(tenant) == 0
    assert status(platform, tenant) == ("success", 0)


async def test_archived_records_are_subtracted_from_the_daily_counts(
    platform: RunningPlatform, tenant: Tenant, past, run
) -> None:
    await past(tenant, 100, 100, 10)
    platform.sql("SELECT gatehouse_fold_usage_counts()")
    assert counted(platform, tenant, "usage_counts", "sum(records)") == 3
    run(tenant)
    platform.sql("SELECT gatehouse_fold_usage_counts()")
    for table in ("usage_counts", "usage_totals", "dlp_event_counts"):
        rows = platform.sql(f"SELECT day, records FROM {table} WHERE tenant_id = %s", [tenant.id])
        assert rows == [((NOW - timedelta(days=10)).date(), 1)]
    # Daily counts of findings are not the totals of a list, so they are not reduced.
    assert counted(platform, tenant, "dlp_counts", "sum(events)") == 3


async def test_values_in_the_archive_equal_those_of_the_database(
    platform: RunningPlatform, tenant: Tenant, past, run, ask: Ask
) -> None:
    awkward = 'a "quoted", line\nbreak\r\n\\N \\t é 漢 \u2028 end'
    await past(
        tenant, 100, request_id=awkward, requested_model="", provider=None, model_id=None, user_id=None,
        cost_usd="12345678901234.000000000000000001", latency_ms=0.1 + 0.2, stream=True, input_tokens=2**40,
    )  # fmt: skip
    await past(tenant, 99, dlp_action=None, cost_usd=None)
    before = {records: platform.sql(f"SELECT * FROM {records} WHERE tenant_id = %s ORDER BY timestamp", [tenant.id])
              for records in RECORDS}  # fmt: skip
    names = {
        records: [row[0] for row in platform.sql(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position",
            [records])]
        for records in RECORDS
    }  # fmt: skip
    assert run(tenant) == 6
    for records in RECORDS:
        archived = ask(tenant, f"SELECT * FROM {records} ORDER BY timestamp")
        expected = [dict(zip(names[records], row, strict=True)) for row in before[records]]
        for result, stored in zip(archived, expected, strict=True):
            for name, value in _comparable(stored).items():
                assert _comparable(result)[name] == value, name


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Normalize a row of the archive or the database: ids and digests become texts, and JSON becomes objects."""
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID):
        return str(value)
    return json.loads(value) if name in {"details", "group_ids"} and isinstance(value, str) else value


async def test_many_rows_become_several_files_in_order(
    platform: RunningPlatform, tenant: Tenant, past, run, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_FILE_ROWS", 4)
    monkeypatch.setattr(files, "GROUP_ROWS", 3)
    monkeypatch.setattr(archiver, "_REMOVAL_ROWS", 2)
    ids = await past(tenant, *(110 - item for item in range(10)))
    assert run(tenant) == 30
    rows = platform.sql(
        "SELECT rows FROM archive_files WHERE tenant_id = %s AND records = 'audit_events' ORDER BY first_sequence",
        [tenant.id],
    )
    assert rows == [(4,), (4,), (2,)]
    assert {row["id"] for row in ask(tenant, "SELECT id FROM usage_records")} == set(map(str, ids))
    assert [row["sequence"] for row in ask(tenant, "SELECT sequence FROM audit_events ORDER BY 1")] == [*range(1, 11)]
    assert counted(platform, tenant, "usage_records") == 0


async def test_records_that_arrive_late_are_archived_by_the_next_run(
    platform: RunningPlatform, tenant: Tenant, past, run, ask: Ask, breaks
) -> None:
    await past(tenant, 100)
    run(tenant)
    await past(tenant, 1)
    late = await past(tenant, 120)
    assert run(tenant) == 2
    # In the chain, the audit event of the late request follows an event of the hot window, and is archived with it.
    assert counted(platform, tenant, "audit_events") == 2
    # The part that is not archived is verified from the end of the archive on.
    part = (await tenant.admin.client.get("/v1/audit/verification")).json()
    assert (part["archived_until"], part["events"], part["breaks"]) == (1, 2, [])
    assert late[0] in {row[0] for row in platform.sql("SELECT id FROM audit_events")}
    assert run(tenant, NOW + timedelta(days=120)) == 4
    assert [row["sequence"] for row in ask(tenant, "SELECT sequence FROM audit_events ORDER BY 1")] == [1, 2, 3]
    assert breaks(tenant) == []


async def test_usage_of_a_month_without_an_invoice_is_not_archived(
    platform: RunningPlatform, tenant: Tenant, past, run
) -> None:
    await tenant.admin.client.put("/api/v1/admin/retention/policy", json={"hot_retention_days": 1})
    at = NOW.replace(day=20, hour=12)
    days = (NOW - at.replace(day=2)) / timedelta(days=1)
    await past(tenant, days)
    run(tenant, at)
    # The event about the change of the policy is of today. It does not delay the archiving of earlier events.
    assert (counted(platform, tenant, "usage_records"), counted(platform, tenant, "dlp_events")) == (1, 0)
    run(tenant, at + timedelta(days=40))
    assert counted(platform, tenant, "usage_records") == 0


async def test_only_one_archiver_runs_at_a_time(
    platform: RunningPlatform, archive: Settings, tenant: Tenant, run
) -> None:
    scratch = archive.gatehouse_home / "scratch"
    first = Archiver(platform.installed.url, archive_storage(archive), platform.host.sealer, scratch, now=NOW)
    with pytest.raises(ArchiverRunning):
        run(tenant)
    first.close()
    assert run(tenant) == 0


async def test_no_record_is_removed_if_the_stored_file_differs(
    platform: RunningPlatform, tenant: Tenant, past, run, monkeypatch: pytest.MonkeyPatch, archive: Settings
) -> None:
    await past(tenant, 100, 99)
    put = Folder.put

    def losing(self: Folder, source: Path, path: str) -> None:
        content = bytearray(source.read_bytes())
        content[len(content) // 3] ^= 1
        source.write_bytes(content)
        put(self, source, path)

    monkeypatch.setattr(Folder, "put", losing)
    run(tenant)
    assert status(platform, tenant)[0] == "failed"
    assert counted(platform, tenant, "audit_events") == 2
    assert counted(platform, tenant, "usage_records") == 2
    monkeypatch.undo()
    assert run(tenant) == 6
    # The files of the failed run were removed.
    stored_files = [path for path in (archive.gatehouse_home / "archive").rglob("*") if path.is_file()]
    assert len(stored_files) == counted(platform, tenant, "archive_files") == 3


async def test_an_unwritable_archive_is_reported_and_no_record_is_removed(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, past, run, archive: Settings
) -> None:
    await past(tenant, 100)
    (archive.gatehouse_home / "archive").write_text("no folder")
    assert run(tenant) == 0
    shown = (await tenant.auditor.client.get("/api/v1/admin/retention/policy")).json()
    assert (shown["last_archival_status"], shown["rows_archived_last_run"]) == ("failed", 0)
    assert shown["last_archival_run"] == NOW.isoformat().replace("+00:00", "Z")
    assert counted(platform, tenant, "usage_records") == 1
    other = (await other_tenant.auditor.client.get("/api/v1/admin/retention/policy")).json()
    assert other["last_archival_run"] is None


async def test_the_metric_counts_organizations_whose_last_run_failed(
    platform: RunningPlatform, tenant: Tenant, past, run, archive: Settings
) -> None:
    await past(tenant, 100)
    # A file stands where the organization's folder has to be.
    place = archive.gatehouse_home / "archive" / "warm" / "usage_records" / str(tenant.id)
    place.parent.mkdir(parents=True)
    place.write_text("no folder")
    run(tenant)
    failures = ArchiverFailures()
    await failures.measure(tools_of(platform.host))
    failing = failures.organizations
    assert failing >= 1
    place.unlink()
    assert run(tenant) > 0
    await failures.measure(tools_of(platform.host))
    assert failures.organizations == failing - 1


async def test_records_of_other_organizations_are_not_archived(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, past, run, ask: Ask
) -> None:
    await past(tenant, 100)
    await past(other_tenant, 100)
    run(tenant)
    assert counted(platform, other_tenant, "usage_records") == 1
    run(other_tenant)
    assert {row["tenant_id"] for row in ask(tenant, "SELECT tenant_id FROM usage_records")} == {str(tenant.id)}


async def test_an_empty_months_partition_is_dropped_and_created_again_for_late_records(
    platform: RunningPlatform, tenant: Tenant, past, run
) -> None:
    await past(tenant, 2000)
    month = (NOW - timedelta(days=2000)).strftime("%Y%m")
    there = f"SELECT to_regclass('audit_events_{month}') IS NOT NULL, to_regclass('usage_records_{month}') IS NOT NULL"
    assert platform.sql(there) == [(True, True)]
    run(tenant)
    assert platform.sql(there) == [(False, False)]
    await past(tenant, 2000)
    assert platform.sql(there) == [(True, True)]
    run(tenant)


async def test_events_that_a_receiver_has_not_accepted_are_not_archived(
    platform: RunningPlatform, tenant: Tenant, past, run, ask: Ask
) -> None:
    await past(tenant, 200, 100, 95)
    platform.sql(
        "UPDATE tenants SET feature_flags = feature_flags || '{\"audit_log_streaming\": true}' WHERE id = %s",
        [tenant.id],
    )
    platform.sql("INSERT INTO siem_targets (tenant_id, type, enabled) VALUES (%s, 'file', true)", [tenant.id])
    first = counted(platform, tenant, "audit_events", "min(sequence)")
    platform.sql("INSERT INTO siem_cursors (tenant_id, sequence) VALUES (%s, %s)", [tenant.id, first])
    run(tenant)
    assert counted(platform, tenant, "audit_events") == 2
    assert ask(tenant, "SELECT count(*) AS n FROM audit_events") == [{"n": 3}]
    platform.sql("UPDATE siem_cursors SET sequence = %s WHERE tenant_id = %s", [first + 2, tenant.id])
    run(tenant)
    assert counted(platform, tenant, "audit_events") == 0
    assert ask(tenant, "SELECT count(*) AS n FROM audit_events") == [{"n": 3}]
