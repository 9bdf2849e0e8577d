"""A legal hold is set and released by administrators, and respected by everything that removes records."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.platform.records.archive.conftest import NOW
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.access.anonymising import anonymise
from gatehouse.platform.records.archive import ageing, forgetting, joining

BASE = "/api/v1/admin/retention/legal-hold"


async def test_a_legal_hold_is_set_shown_and_released(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    none = {"active": False, "reason": None, "set_by": None, "set_at": None}
    assert (await tenant.auditor.client.get(BASE)).json() == none
    answer = await tenant.admin.client.put(BASE, json={"reason": "case 7"})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["active"], shown["reason"], shown["set_by"]) == (True, "case 7", str(tenant.admin.id))
    assert (await tenant.auditor.client.get(BASE)).json() == shown
    assert (await other_tenant.auditor.client.get(BASE)).json() == none
    again = await tenant.admin.client.put(BASE, json={"reason": "case 8"})
    assert again.json() == {**shown, "reason": "case 8"}
    assert (await tenant.admin.client.delete(BASE)).status_code == 204
    assert (await tenant.admin.client.get(BASE)).json() == none
    events = await platform.audit(tenant, "legal_hold.set")
    assert [event["details"] for event in events] == [
        {"hold": "case 7", "before": None}, {"hold": "case 8", "before": "case 7"},
    ]  # fmt: skip
    (released,) = await platform.audit(tenant, "legal_hold.released")
    assert released["details"]["hold"] == "case 8"


async def test_releasing_without_a_legal_hold_is_refused(tenant: Tenant) -> None:
    answer = await tenant.admin.client.delete(BASE)
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": " "}, {"reason": "x" * 2001}, {"reason": 7}])
async def test_a_legal_hold_needs_a_reason(tenant: Tenant, body: dict[str, Any]) -> None:
    answer = await tenant.admin.client.put(BASE, json=body)
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "reason")


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.anonymous.get(BASE)).status_code == 401
    assert (await tenant.user.client.get(BASE)).status_code == 403
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.put(BASE, json={"reason": "x"})).status_code == 403
        assert (await person.client.delete(BASE)).status_code == 403


async def test_nothing_is_removed_from_the_database_or_the_archive(
    platform: RunningPlatform,
    tenant: Tenant,
    past,
    run,
    archive,
) -> None:
    await past(tenant, 100)
    run(tenant)
    await past(tenant, 99)
    await tenant.admin.client.put(BASE, json={"reason": "case 7"})
    before = sorted((archive.gatehouse_home / "archive").rglob("*.parquet"))
    assert run(tenant, NOW + timedelta(days=9000)) == 0
    assert sorted((archive.gatehouse_home / "archive").rglob("*.parquet")) == before
    assert platform.sql("SELECT count(*) FROM usage_records WHERE tenant_id = %s", [tenant.id]) == [(1,)]
    policy = (await tenant.admin.client.get("/api/v1/admin/retention/policy")).json()
    assert policy["last_archival_status"] == "held"
    await tenant.admin.client.delete(BASE)
    assert run(tenant) == 3
    assert platform.sql("SELECT count(*) FROM usage_records WHERE tenant_id = %s", [tenant.id]) == [(0,)]


async def test_the_database_itself_refuses_to_remove_records_under_a_hold(
    platform: RunningPlatform,
    tenant: Tenant,
    past,
    run,
) -> None:
    await past(tenant, 100)
    run(tenant)
    files = platform.sql("SELECT records, id FROM archive_files WHERE tenant_id = %s", [tenant.id])
    await tenant.admin.client.put(BASE, json={"reason": "case 7"})
    for records, file in files:
        values = [file, 10] if records == "audit_events" else [file, [datetime.now(UTC)], [file]]
        call = f"gatehouse_remove_{records}({', '.join(['%s'] * len(values))})"
        assert platform.sql(f"SELECT {call}", values) == [(None,)]


async def test_setting_a_hold_waits_for_a_removal_in_progress(platform: RunningPlatform, tenant: Tenant) -> None:
    async with platform.host.database.service() as removing:
        connection = await removing.connection()
        has_legal_hold = await connection.exec_driver_sql("SELECT gatehouse_held(%s)", (tenant.id,))
        assert has_legal_hold.scalar_one() is False
        setting = asyncio.create_task(tenant.admin.client.put(BASE, json={"reason": "case 7"}))
        done, _ = await asyncio.wait([setting], timeout=0.5)
        assert not done
        await removing.commit()
    assert (await setting).status_code == 200


async def test_a_removed_user_is_anonymized_only_after_the_release(
    platform: RunningPlatform,
    tenant: Tenant,
    past,
    tools,
) -> None:
    await past(tenant, 1)
    await tenant.admin.client.put(BASE, json={"reason": "case 7"})
    await tenant.admin.client.delete(f"/api/admin/users/{tenant.user.id}")
    names = {"tenant_id": tenant.id, "user_id": str(tenant.user.id)}
    named = "SELECT count(*) FROM audit_events WHERE tenant_id = %s AND actor_id = %s"
    await anonymise(tools, **names)
    assert platform.sql(named, [tenant.id, str(tenant.user.id)]) == [(1,)]
    # The anonymization is tried again on the next day.
    query = "SELECT count(*) FROM jobs WHERE kind = 'access.anonymise' AND args->>'user_id' = %s"
    waiting = f"{query} AND run_at > now() + interval '23 hours' AND run_at < now() + interval '25 hours'"
    assert platform.sql(waiting, [str(tenant.user.id)]) == [(1,)]
    await tenant.admin.client.delete(BASE)
    await anonymise(tools, **names)
    assert platform.sql(named, [tenant.id, str(tenant.user.id)]) == [(0,)]


@pytest.mark.parametrize(("step", "days"), [("age", 1000), ("join", 130), ("forget", 0)])
async def test_a_running_archiver_moves_no_file_after_a_hold_was_set(
    platform: RunningPlatform, tenant: Tenant, past, run, archive, step: str, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (100, 101):
        await past(tenant, day)
        run(tenant)
    platform.sql("INSERT INTO archive_forgets VALUES (%s, %s)", [tenant.id, tenant.user.id])
    folder = archive.gatehouse_home / "archive"
    before = sorted(folder.rglob("*.parquet"))
    module = {"age": ageing, "join": joining, "forget": forgetting}[step]
    work = getattr(module, step)

    def after_a_hold(*args: Any) -> None:
        platform.sql("INSERT INTO legal_holds (tenant_id, reason, set_by) VALUES (%s, 'a', 'b')", [tenant.id])
        work(*args)

    monkeypatch.setattr(module, step, after_a_hold)
    run(tenant, NOW + timedelta(days=days))
    assert set(folder.rglob("*.parquet")) >= set(before)
    kept = platform.sql("SELECT path FROM archive_files WHERE tenant_id = %s AND state = 'kept'", [tenant.id])
    assert {folder / path for (path,) in kept} == set(before)
    assert platform.sql("SELECT status FROM archive_runs WHERE tenant_id = %s", [tenant.id]) == [("held",)]
