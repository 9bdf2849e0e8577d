"""GET /api/admin/usage/series (docs/records.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any

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


async def test_a_series_of_an_alias_has_its_requests_alone_and_those_of_each_deployment(
    tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    now = datetime.now(UTC)
    at = {"timestamp": now.timestamp(), "latency_ms": 0}
    west = {**at, "model_alias": "fast", "provider": "west"}
    failed = {"outcome": "error", "status": 502, "cost_usd": None}
    await journal.append(
        outcome(tenant.id, **at, cost_usd="9"),
        outcome(tenant.id, **at, model_alias="fast", cost_usd="1"),
        *(outcome(tenant.id, **west, cost_usd="0.5") for _ in range(2)),
        outcome(tenant.id, **west, shadow=True),
        outcome(tenant.id, **west, **failed),
        outcome(tenant.id, **at, model_alias="fast", provider=None, model_id=None, **failed),
        outcome(tenant.id, **at, model_alias="cheap", cost_usd="0.25"),
        outcome(tenant.id, timestamp=(now - timedelta(days=3)).timestamp(), latency_ms=0, model_alias="fast"),
        outcome(other_tenant.id, **at, model_alias="fast"),
    )
    await journal.drain()

    async def series(**query: str) -> dict[str, Any]:
        body: dict[str, Any] = (await tenant.auditor.client.get(SERIES, params=query)).json()
        return body

    def sums(part: dict[str, Any]) -> tuple[int, int, float]:
        for name in ("requests", "errors", "cost_usd"):
            assert sum(point[name] for point in part["points"]) == pytest.approx(part[name])
        return part["requests"], part["errors"], part["cost_usd"]

    whole = await series()
    assert (sum(point["requests"] for point in whole["points"]), whole["parts"]) == (8, [])
    fast = await series(model_alias="fast", by="deployment")
    assert [point["requests"] for point in fast["points"] if point["requests"]] == [6]
    assert {(part["provider"], part["shadow"]): sums(part) for part in fast["parts"]} == {
        ("west", False): (3, 1, 1.0), ("sandbox", False): (1, 0, 1.0), ("west", True): (1, 0, 0.000013),
        (None, False): (1, 1, 0),
    }  # fmt: skip
    assert (fast["parts"][0]["model_alias"], fast["parts"][0]["model_id"]) == ("fast", "echo")
    aliases = await series(by="model_alias", period="week")
    assert [(part["model_alias"], part["provider"], sums(part)[0]) for part in aliases["parts"]] == [
        ("fast", None, 7), ("cheap", None, 1),
    ]  # fmt: skip
    assert [point["requests"] for point in aliases["parts"][0]["points"]] == [0, 0, 0, 1, 0, 0, 6]
    assert (await series(model_alias="none", by="deployment"))["parts"] == []


async def test_the_parts_of_a_series_are_those_with_the_most_requests(tenant: Tenant, journal: Journal) -> None:
    at = datetime.now(UTC).timestamp()
    names = [f"a{number:02}" for number in range(52)]
    await journal.append(
        *(outcome(tenant.id, timestamp=at, latency_ms=0, model_alias=name) for name in [*names, *names[2:]])
    )
    await journal.drain()
    parts = (await tenant.admin.client.get(SERIES, params={"by": "model_alias"})).json()["parts"]
    assert [part["model_alias"] for part in parts] == names[2:]
