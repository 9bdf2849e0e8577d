"""GET /api/admin/usage/series (docs/records.md)."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

SERIES = "/api/admin/usage/series"
NOTHING = {"requests": 0, "errors": 0, "blocked": 0, "dlp_triggers": 0, "cost_usd": 0}


async def test_a_series_has_every_hour_of_today_and_every_day_of_longer_periods(
    tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    now = datetime.now(UTC)
    await journal.append(
        outcome(tenant.id, timestamp=now.timestamp(), latency_ms=0),
        outcome(
            tenant.id, timestamp=now.timestamp(), latency_ms=0, outcome="refused", status=403,
            error_code="dlp_violation", cost_usd=None,
        ),
        outcome(tenant.id, timestamp=(now - timedelta(days=3)).timestamp(), latency_ms=0, cost_usd="0.5"),
        outcome(tenant.id, timestamp=(now - timedelta(days=30)).timestamp()),
        outcome(other_tenant.id, timestamp=now.timestamp()),
    )  # fmt: skip
    await journal.drain()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = (await tenant.auditor.client.get(SERIES)).json()
    hours = [today + timedelta(hours=hour) for hour in range(datetime.now(UTC).hour + 1)]
    assert (day["period"], day["step"]) == ("day", "hour")
    assert [datetime.fromisoformat(point["start"]) for point in day["points"]] == hours
    expected = {**NOTHING, "requests": 2, "blocked": 1, "cost_usd": 0.000013}
    assert [point for point in day["points"] if point["requests"]] == [
        {"start": f"{now:%Y-%m-%dT%H}:00:00Z", **expected}
    ]
    for period, days in (("week", 7), ("month", 30)):
        series = (await tenant.admin.client.get(SERIES, params={"period": period})).json()
        assert series["step"] == "day"
        assert [point["start"] for point in series["points"]] == [
            f"{today - timedelta(days=ago):%Y-%m-%dT00:00:00Z}" for ago in reversed(range(days))
        ]
        assert [(point["requests"], point["cost_usd"]) for point in series["points"] if point["requests"]] == [
            (1, 0.5), (2, 0.000013),
        ]  # fmt: skip


async def test_only_those_who_see_the_organization_read_its_series(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.anonymous.get(SERIES)).status_code == 401
    assert (await tenant.user.client.get(SERIES)).status_code == 403


@pytest.mark.parametrize("period", ["year", ""])
async def test_an_unknown_period_names_the_parameter(tenant: Tenant, period: str) -> None:
    answer = await tenant.admin.client.get(SERIES, params={"period": period})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", "period"]
