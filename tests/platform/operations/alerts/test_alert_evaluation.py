"""The conditions under which an alert rule triggers, by a clock that the test controls (docs/alerts.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from tests.platform.operations.alerts.conftest import NOW, Alerts
from tests.support.journal import Journal, outcome
from tests.support.platform import Tenant

from gatehouse.foundation.storage.database import Database

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("metric", "figures", "value"),
    [
        ("cost", {"cost_usd": "0.1"}, 0.3),
        ("error_rate", {"requests": 8, "errors": 1}, 12.5),
        ("dlp_trigger_count", {"dlp_triggers": 2}, 6),
        ("blocked_request_count", {"blocked": 4}, 12),
        ("latency_p95", {"latencies": tuple(range(1, 101))}, 95),
    ],
)
async def test_each_metric_covers_the_whole_window(
    alerts: Alerts, other_tenant: Tenant, metric: str, figures: dict[str, Any], value: float
) -> None:
    rule = await alerts.new(metric_type=metric, threshold=0)
    for ago in (0, 2, 5):
        alerts.figures(MINUTE * ago, **figures)
    alerts.platform.sql(
        "INSERT INTO usage_minutes VALUES (%s, %s, 9, 9, 9, 9, 9, '{1}')", [other_tenant.id, NOW.replace(second=0)]
    )
    await alerts.evaluate()
    (record,) = await alerts.history(rule)
    assert record["metric_value"] == pytest.approx(value, rel=0.05 if metric == "latency_p95" else 1e-12)
    assert record == {
        "id": record["id"], "rule_id": rule, "rule_name": "Spend", "metric_value": record["metric_value"],
        "threshold": 0, "triggered_at": "2026-03-01T12:30:50Z", "webhook_delivered": False,
        "webhook_error": None,
    }  # fmt: skip


@pytest.mark.parametrize(("comparison", "met"), [("gt", [11]), ("gte", [10, 11]), ("lt", [9]), ("lte", [9, 10])])
async def test_only_gte_and_lte_include_the_threshold(alerts: Alerts, comparison: str, met: list[int]) -> None:
    for number, cost in enumerate((9, 10, 11)):
        alerts.clock.move(timedelta(hours=1).total_seconds())
        alerts.figures(cost_usd=cost)
        rule = await alerts.new(comparison=comparison, name=str(number))
        await alerts.evaluate()
        assert bool(await alerts.history(rule)) == (cost in met), cost


@pytest.mark.parametrize("metric", ["error_rate", "latency_p95"])
@pytest.mark.parametrize("comparison", ["gt", "lt", "gte", "lte"])
async def test_without_requests_rates_and_latencies_are_undefined(alerts: Alerts, metric: str, comparison: str) -> None:
    rule = await alerts.new(metric_type=metric, comparison=comparison, threshold=0)
    await alerts.evaluate()
    assert await alerts.history(rule) == []


@pytest.mark.parametrize("metric", ["cost", "dlp_trigger_count", "blocked_request_count"])
async def test_without_requests_the_other_metrics_are_zero(alerts: Alerts, metric: str) -> None:
    rule = await alerts.new(metric_type=metric, comparison="lt", threshold=1)
    await alerts.evaluate()
    assert [record["metric_value"] for record in await alerts.history(rule)] == [0]


@pytest.mark.parametrize(
    ("window", "ago", "inside"),
    [
        (1, timedelta(seconds=50), True),
        (1, timedelta(seconds=51), True),
        (1, timedelta(seconds=110), True),
        (1, timedelta(seconds=111), False),
        (60, timedelta(minutes=60, seconds=50), True),
        (60, timedelta(minutes=60, seconds=51), False),
        (10_080, timedelta(days=7, seconds=50), True),
        (10_080, timedelta(days=7, seconds=51), False),
    ],
)
@pytest.mark.parametrize("metric", ["cost", "latency_p95"])
async def test_a_window_includes_the_current_minute(
    alerts: Alerts, metric: str, window: int, ago: timedelta, inside: bool
) -> None:
    alerts.figures(ago, requests=1, cost_usd=1, latencies=(100,))
    rule = await alerts.new(metric_type=metric, window_minutes=window, threshold=0)
    await alerts.evaluate()
    assert bool(await alerts.history(rule)) is inside


async def test_a_window_may_span_midnight(alerts: Alerts) -> None:
    alerts.clock.move((NOW.replace(hour=23, minute=59) - NOW).total_seconds() + 10)
    alerts.figures(timedelta(seconds=1), cost_usd=11)
    rule = await alerts.new()
    await alerts.evaluate()
    assert [record["triggered_at"] for record in await alerts.history(rule)] == ["2026-03-02T00:00:00Z"]


@pytest.mark.parametrize(
    "change", [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)], ids=["spring", "autumn"]
)
async def test_windows_and_cooldowns_ignore_daylight_saving(alerts: Alerts, change: datetime) -> None:
    """The local time of the database's zone jumps forward or back by an hour. The window must not become longer or
    shorter."""
    alerts.clock.move((change - NOW).total_seconds() - 10)
    async with in_zone(alerts, "Europe/Berlin"):
        rule = await alerts.new(window_minutes=30, cooldown_minutes=30, threshold=0)
        alerts.figures(cost_usd=1)
        triggered = []
        for minute in range(65):
            alerts.platform.sql("UPDATE alert_rules SET evaluated_at = NULL WHERE id = %s", [rule])
            await alerts.evaluate()
            if len(await alerts.history(rule)) > len(triggered):
                triggered.append(minute)
            alerts.clock.move(60)
        moments = [record["triggered_at"] for record in await alerts.history(rule)]
    # The window still contains the request half an hour later, but not an hour later.
    assert triggered == [0, 30]
    expected = [change + timedelta(minutes=minutes, seconds=-10) for minutes in (30, 0)]
    assert [datetime.fromisoformat(moment) for moment in moments] == expected


@asynccontextmanager
async def in_zone(alerts: Alerts, zone: str) -> AsyncIterator[None]:
    """Evaluate the rules in a database with this time zone."""
    url = alerts.platform.installed.url
    zoned = Database(f"{url}{'&' if '?' in url else '?'}options=-c%20timezone%3D{zone}", pool_size=2)
    async with zoned.service() as session:
        reset = await session.execute(text("SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'"))
        assert reset.scalar_one() == zone
    alerts.tools = msgspec.structs.replace(alerts.tools, database=zoned)
    yield
    await zoned.close()


async def test_a_rule_in_cooldown_is_evaluated_without_a_notification(alerts: Alerts) -> None:
    rule = await alerts.new(comparison="gte", threshold=0, cooldown_minutes=2)
    await alerts.evaluate()
    for seconds, times in ((60, 1), (59, 1), (1, 2), (119, 2), (60, 3)):
        alerts.clock.move(seconds)
        alerts.platform.sql("UPDATE alert_rules SET evaluated_at = NULL WHERE id = %s", [rule])
        await alerts.evaluate()
        assert len(await alerts.history(rule)) == times
    assert len(await alerts.platform.audit(alerts.tenant, "alert_rule.triggered")) == 3
    shown = (await alerts.tenant.admin.client.get(f"/api/alerts/{rule}")).json()
    assert shown["last_triggered_at"] == (await alerts.history(rule))[0]["triggered_at"]


async def test_a_rule_is_evaluated_at_once_and_then_every_interval(alerts: Alerts) -> None:
    rule = await alerts.new(cooldown_minutes=1)
    await alerts.evaluate()
    alerts.figures(cost_usd=11)
    alerts.clock.move(59.9)
    await alerts.evaluate()
    assert await alerts.history(rule) == []
    alerts.clock.move(0.1)
    await alerts.evaluate()
    assert len(await alerts.history(rule)) == 1


async def test_a_disabled_rule_is_left_out_until_it_is_enabled(alerts: Alerts) -> None:
    rule = await alerts.new(enabled=False, comparison="gte", threshold=0)
    await alerts.evaluate()
    assert await alerts.history(rule) == []
    await alerts.tenant.admin.client.put(f"/api/alerts/{rule}", json={"enabled": True})
    await alerts.evaluate()
    assert len(await alerts.history(rule)) == 1


async def test_rules_of_a_deleted_organization_are_not_evaluated(alerts: Alerts) -> None:
    await alerts.new(comparison="gte", threshold=0)
    alerts.platform.sql("UPDATE tenants SET deleted_at = now() WHERE id = %s", [alerts.tenant.id])
    await alerts.evaluate()
    assert alerts.platform.sql("SELECT count(*) FROM alert_history WHERE tenant_id = %s", [alerts.tenant.id]) == [(0,)]


async def test_history_keeps_the_rule_as_it_was_when_it_triggered(alerts: Alerts) -> None:
    rule = await alerts.new(comparison="gte", threshold=0)
    await alerts.evaluate()
    await alerts.tenant.admin.client.put(f"/api/alerts/{rule}", json={"name": "other", "threshold": 7})
    (record,) = await alerts.history(rule)
    assert (record["rule_name"], record["threshold"]) == ("Spend", 0)


async def test_concurrent_machines_share_the_rules(alerts: Alerts) -> None:
    rules = [await alerts.new(comparison="gte", threshold=0, cooldown_minutes=1) for _ in range(5)]
    for _ in range(2):
        await asyncio.gather(*(alerts.evaluate() for _ in range(3)))
        alerts.clock.move(60)
    assert [len(await alerts.history(rule)) for rule in rules] == [2] * 5


async def test_one_organizations_failure_does_not_delay_others(
    alerts: Alerts, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {}
    for tenant in (other_tenant, alerts.tenant):
        alerts.tenant = tenant
        rules[tenant.id] = await alerts.new(comparison="gte", threshold=0)
    alerts.platform.sql(
        f"ALTER TABLE alert_history ADD CONSTRAINT none_of_theirs CHECK (tenant_id <> '{other_tenant.id}')"
    )
    try:
        with pytest.raises(Exception, match="none_of_theirs"):
            await alerts.evaluate()
    finally:
        alerts.platform.sql("ALTER TABLE alert_history DROP CONSTRAINT none_of_theirs")
    assert len(await alerts.history(rules[alerts.tenant.id])) == 1


async def test_a_recorded_request_triggers_a_rule(alerts: Alerts, journal: Journal) -> None:
    """The test covers the whole path from the journal to the history, as in production."""
    rule = await alerts.new(metric_type="error_rate", threshold=49)
    at = NOW.timestamp()
    await journal.append(
        outcome(alerts.tenant.id, timestamp=at), outcome(alerts.tenant.id, timestamp=at, outcome="error", status=502)
    )
    await journal.drain()
    await alerts.evaluate()
    assert [record["metric_value"] for record in await alerts.history(rule)] == [50]
