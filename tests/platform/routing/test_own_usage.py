"""GET /api/v1/usage/summary (docs/records.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import Outcome

SUMMARY = "/api/v1/usage/summary"
BUDGETS = "/api/admin/budgets"
NOTHING = {
    "requests": 0,
    "refused": 0,
    "redacted": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "cached_tokens": 0,
    "cost_usd": 0,
}


@pytest.fixture
async def journal(platform: RunningPlatform, tmp_path: Any) -> Any:
    made = Journal(platform.installed.url, tmp_path / "journal")
    yield made
    await made.killed()


def call(tenant: Tenant, moment: datetime, **fields: Any) -> Outcome[UUID]:
    return outcome(tenant.id, user_id=tenant.user.id, timestamp=moment.timestamp(), **fields)


async def test_a_summary_has_the_callers_own_usage_by_day_and_model(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    now = datetime.now(UTC)
    await journal.append(
        call(tenant, now, cached_tokens=2, dlp_action="REDACT"),
        call(tenant, now, provider="openai", model_id="large", cost_usd="0.5"),
        call(tenant, now - timedelta(days=2)),
        call(tenant, now, provider=None, model_id=None, outcome="refused", cost_usd=None, input_tokens=None),
        call(tenant, now - timedelta(days=40)),
        outcome(tenant.id, user_id=tenant.admin.id),
    )
    await journal.drain()
    summary = (await tenant.user.client.get(SUMMARY)).json()
    assert summary["total"] == {
        "requests": 4, "refused": 1, "redacted": 1, "input_tokens": 9, "output_tokens": 20, "cached_tokens": 2,
        "cost_usd": 0.500026,
    }  # fmt: skip
    assert [(model["provider"], model["model_id"], model["requests"]) for model in summary["models"]] == [
        ("openai", "large", 1), ("sandbox", "echo", 2), (None, None, 1),
    ]  # fmt: skip
    days = {day["day"]: day["requests"] for day in summary["days"]}
    assert list(days) == [str((now - timedelta(days=ago)).date()) for ago in range(29, -1, -1)]
    assert {day: requests for day, requests in days.items() if requests} == {
        str((now - timedelta(days=2)).date()): 1, str(now.date()): 3,
    }  # fmt: skip
    assert summary["since"] == f"{(now - timedelta(days=29)).date()}T00:00:00Z"
    for period, length, requests in (("day", 1, 3), ("week", 7, 4)):
        shorter = (await tenant.user.client.get(SUMMARY, params={"period": period})).json()
        assert (len(shorter["days"]), shorter["total"]["requests"]) == (length, requests)
    by_key = await platform.client(await platform.new_key(tenant.user)).get(SUMMARY)
    assert by_key.json()["total"] == summary["total"]
    of_auditor = (await tenant.auditor.client.get(SUMMARY)).json()
    assert (of_auditor["total"], of_auditor["models"], len(of_auditor["days"])) == (NOTHING, [], 30)


async def test_days_are_those_of_the_organizations_time_zone(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    zone = ZoneInfo("Pacific/Kiritimati")
    platform.sql("UPDATE tenants SET timezone = %s WHERE id = %s", [zone.key, tenant.id])
    midnight = datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    await journal.append(call(tenant, midnight), call(tenant, midnight - timedelta(seconds=1)))
    await journal.drain()
    summary = (await tenant.user.client.get(SUMMARY, params={"period": "week"})).json()
    assert summary["time_zone"] == zone.key
    assert [(day["day"], day["requests"]) for day in summary["days"][-2:]] == [
        (str((midnight - timedelta(days=1)).date()), 1), (str(midnight.date()), 1),
    ]  # fmt: skip
    assert (await tenant.user.client.get(SUMMARY, params={"period": "day"})).json()["total"]["requests"] == 1


async def test_the_callers_budgets_are_shown_with_their_remaining_amounts(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    admin = tenant.admin.client
    await platform.new_key(tenant.user, description="nightly")
    await platform.new_key(tenant.admin)
    keys = {
        user_id: key_id
        for key_id, user_id in platform.sql("SELECT id, user_id FROM api_keys WHERE tenant_id = %s", [tenant.id])
    }
    groups = [(await admin.post("/api/admin/groups", json={"name": name})).json()["id"] for name in ("in", "out")]
    await admin.post(f"/api/admin/groups/{groups[0]}/members", json={"user_id": str(tenant.user.id)})
    await journal.append(call(tenant, datetime.now(UTC), group_id=UUID(groups[0]), cost_usd="0.25"))
    await journal.drain()
    for scope_type, scope_id, limits in (
        ("tenant", None, {"limit_usd": 100, "action": "warn"}),
        ("group", groups[0], {"limit_requests": 10}),
        ("group", groups[1], {"limit_requests": 10}),
        ("user", str(tenant.user.id), {"limit_tokens": 7, "limit_usd": 1}),
        ("user", str(tenant.admin.id), {"limit_usd": 1}),
        ("api_key", str(keys[tenant.user.id]), {"limit_usd": 5}),
        ("api_key", str(keys[tenant.admin.id]), {"limit_usd": 5}),
    ):
        body = {"scope_type": scope_type, "scope_id": scope_id, "period": "month", **limits}
        assert (await admin.post(BUDGETS, json=body)).status_code == 201
    name = platform.sql(
        "UPDATE tenants SET monthly_request_limit = 3 WHERE id = %s RETURNING name", [tenant.id]
    )[0][0]  # fmt: skip

    shown = (await tenant.user.client.get(SUMMARY)).json()["budgets"]
    amounts = ("scope_type", "scope_name", "blocks", "remaining_usd", "remaining_requests", "remaining_tokens")
    assert [tuple(budget[field] for field in amounts) for budget in shown] == [
        ("user", None, True, 0.75, None, 0),
        ("api_key", "nightly", True, 5, None, None),
        ("group", "in", True, None, 9, None),
        ("tenant", name, False, 99.75, None, None),
        ("plan", name, True, None, 3, None),
    ]
    assert (shown[0]["limit_usd"], shown[0]["limit_requests"], shown[0]["limit_tokens"]) == (1, None, 7)
    assert datetime.fromisoformat(shown[0]["period_end"]) > datetime.now(UTC)
    await admin.patch("/api/v1/admin/org/feature-flags/budget_enforcement", json={"enabled": False})
    shown = (await tenant.user.client.get(SUMMARY)).json()["budgets"]
    assert {budget["blocks"] for budget in shown} == {False}


async def test_only_people_have_a_summary(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.anonymous.get(SUMMARY)).status_code == 401
    assert (await (await platform.new_m2m(tenant.id, "api:read")).get(SUMMARY)).status_code == 403


async def test_another_tenant_sees_nothing(tenant: Tenant, other_tenant: Tenant, journal: Journal) -> None:
    await journal.append(call(tenant, datetime.now(UTC)))
    await journal.drain()
    assert (await other_tenant.user.client.get(SUMMARY)).json()["total"] == NOTHING


async def test_a_bad_period_is_named(tenant: Tenant) -> None:
    answer = await tenant.user.client.get(SUMMARY, params={"period": "year"})
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", "period"]]
