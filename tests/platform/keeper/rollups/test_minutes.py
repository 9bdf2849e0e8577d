"""The counts for alerts and for cost routing's analytics: requests by minute, latencies by hour, routes by day."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from tests.support.journal import Journal, opened, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import DlpEvent
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.records.minutes.table import latencies

#: The last second of a minute, of an hour and of a day.
MOMENT = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)
REFUSED: dict[str, Any] = {
    "outcome": "refused", "provider": None, "model_id": None, "input_tokens": None, "output_tokens": None,
    "cached_tokens": None, "cost_usd": None,
}  # fmt: skip


def dlp_event(rule_id: str | None, action: str) -> DlpEvent:
    return DlpEvent(
        rule_id=rule_id, rule_name="r", detector_type="regex", entity_type="EMAIL", direction="input", status="logged",
        action=action, severity="low", source="platform", score=0.9, match_count=1,
    )  # fmt: skip


def minutes(platform: RunningPlatform, tenant: Tenant) -> list[Any]:
    return platform.sql(
        "SELECT to_char(minute AT TIME ZONE 'UTC', 'HH24:MI'), requests, errors, blocked, dlp_triggers, cost_usd,"
        " (SELECT COALESCE(sum(k & 4294967295), 0)::int FROM unnest(latency) k) FROM usage_minutes"
        " WHERE tenant_id = %s ORDER BY minute",
        [tenant.id],
    )


def days(platform: RunningPlatform, tenant: Tenant) -> list[Any]:
    return platform.sql(
        "SELECT day::text, provider, model_id, routing_policy_id, group_id, requests, cost_usd, fallbacks,"
        " cost_cap_blocks, input_tokens, output_tokens FROM routing_days WHERE tenant_id = %s ORDER BY day, provider",
        [tenant.id],
    )


async def test_a_request_counts_in_the_minute_in_which_it_ended(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    at = MOMENT.timestamp()
    await journal.append(outcome(tenant.id, timestamp=at, latency_ms=999), outcome(other_tenant.id, timestamp=at))
    await journal.drain()
    await journal.append(outcome(tenant.id, timestamp=at, latency_ms=1000), outcome(tenant.id, timestamp=at))
    await journal.drain()
    one = Decimal("0.000013")
    assert minutes(platform, tenant) == [("23:59", 2, 0, 0, 0, 2 * one, 2), ("00:00", 1, 0, 0, 0, one, 1)]
    assert minutes(platform, other_tenant) == [("23:59", 1, 0, 0, 0, one, 1)]


@pytest.mark.parametrize(
    ("fields", "counted"),
    [
        ({}, "-"),
        ({"outcome": "cancelled", "status": 499}, "-"),
        ({"outcome": "error", "status": 502}, "error"),
        ({"outcome": "error", "status": 200, "error_code": "provider_error"}, "error"),
        ({**REFUSED, "status": 503, "error_code": "dlp_unavailable"}, "error"),
        ({**REFUSED, "status": 400}, "-"),
        ({**REFUSED, "status": 404, "error_code": "model_not_found"}, "-"),
        ({**REFUSED, "status": 402, "error_code": "cost_cap_exceeded"}, "blocked"),
        ({**REFUSED, "status": 429, "error_code": "quota_exceeded"}, "blocked"),
        ({**REFUSED, "status": 403, "error_code": "dlp_violation"}, "blocked"),
        ({**REFUSED, "status": 400, "error_code": "dlp_violation"}, "blocked"),
        ({**REFUSED, "status": 403, "error_code": "insufficient_scope"}, "blocked"),
        ({**REFUSED, "status": 503, "error_code": "provider_unavailable"}, "blocked"),
        # A kill switch on an outpost.
        ({**REFUSED, "status": 503, "error_code": "kill_switch_active"}, "blocked"),
        # A stream that DLP stopped before its end.
        ({"outcome": "error", "stream": True, "status": 403, "error_code": "dlp_violation"}, "blocked"),
    ],
)
async def test_an_outcome_counts_as_error_as_blocked_or_as_neither(
    platform: RunningPlatform, tenant: Tenant, journal: Journal, fields: dict[str, Any], counted: str
) -> None:
    await journal.append(outcome(tenant.id, timestamp=MOMENT.timestamp(), **fields))
    await journal.drain()
    ((_, requests, errors, blocked, _, _, timed),) = minutes(platform, tenant)
    assert (requests, errors, blocked) == (1, int(counted == "error"), int(counted == "blocked"))
    assert timed == (fields.get("outcome") != "refused")


async def test_an_interrupted_stream_is_an_error_of_unknown_duration(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(opened(outcome(tenant.id, timestamp=MOMENT.timestamp(), stream=True)))
    await journal.killed()
    await journal.drain()
    assert minutes(platform, tenant) == [("23:59", 1, 1, 0, 0, 0, 0)]


async def test_triggers_are_counted_like_they_are_announced(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    events = (dlp_event("a", "redact"), dlp_event("b", "log_only"), dlp_event("c", "allow"), dlp_event(None, "block"))
    await journal.append(outcome(tenant.id, timestamp=MOMENT.timestamp(), dlp_events=events))
    await journal.drain()
    rows = platform.sql("SELECT count(*) FROM outbox WHERE tenant_id = %s", [tenant.id])[0][0]
    assert minutes(platform, tenant)[0][4] == rows == 1


async def test_latencies_of_hours_and_minutes_are_of_the_same_requests(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    """The journal contains five requests a minute from 21:58 to 00:03, in two batches. The test reads windows that
    begin or end near a full hour."""
    start = MOMENT.replace(hour=21, minute=58, second=0)
    ended = [start + timedelta(minutes=minute, seconds=second) for minute in range(125) for second in range(5)]
    for part in (ended[::2], ended[1::2]):
        await journal.append(*(outcome(tenant.id, timestamp=at.timestamp(), latency_ms=0.9) for at in part))
        await journal.drain()
    async with platform.host.database.tenant(TenantId(tenant.id)) as session:
        for first in (0, 1, 2, 3, 61, 62):
            for length in (1, 2, 58, 60, 61, 120):
                since = start + timedelta(minutes=first)
                until = since + timedelta(minutes=length)
                expected = sum(since <= at < until for at in ended)
                assert sum((await latencies(session, since, until)).values()) == expected, (since, until)


async def test_hours_contain_the_sums_of_their_minutes(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    at = MOMENT.timestamp()
    for _ in range(2):
        await journal.append(
            outcome(tenant.id, timestamp=at, latency_ms=0),
            outcome(tenant.id, timestamp=at - 600, outcome="error", status=502),
            outcome(tenant.id, timestamp=at - 1200, dlp_events=[dlp_event("r", "redact")]),
            outcome(tenant.id, timestamp=at - 4000, **{**REFUSED, "status": 403, "error_code": "dlp_violation"}),
        )
        await journal.drain()
    sums = "sum(requests), sum(errors), sum(blocked), sum(dlp_triggers), sum(cost_usd)"
    hour = "date_trunc('hour', minute, 'UTC')"
    by_minute = f"SELECT {hour}, {sums} FROM usage_minutes WHERE tenant_id = %s GROUP BY 1 ORDER BY 1"
    by_hour = f"SELECT hour, {sums} FROM usage_hours WHERE tenant_id = %s GROUP BY 1 ORDER BY 1"
    expected = platform.sql(by_minute, [tenant.id])
    assert [tuple(row[1:5]) for row in expected] == [(2, 0, 2, 0), (6, 2, 0, 2)]
    assert platform.sql(by_hour, [tenant.id]) == expected


async def test_packing_latencies_loses_none(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> None:
    at = MOMENT.replace(second=0).timestamp()
    for batch in range(4):
        lengths = [1.1 ** (number / 2 + batch) for number in range(120)]
        await journal.append(*(outcome(tenant.id, timestamp=at, latency_ms=length / 1000) for length in lengths))
        await journal.append(*(outcome(tenant.id, timestamp=at, latency_ms=length) for length in lengths))
        await journal.drain()
    for table in ("usage_minutes", "usage_hours"):
        query = (
            f"SELECT max(cardinality(latency)), sum((SELECT sum(k & 4294967295) FROM unnest(latency) k)) FROM {table}"
            " WHERE tenant_id = %s"
        )
        longest, counted = platform.sql(query, [tenant.id])[0]
        assert counted == 4 * 240
        assert longest < 4 * 65


async def test_routes_are_summed_over_batches_by_the_day_of_arrival(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    group, at = uuid4(), MOMENT.timestamp()
    policy = str(uuid4())
    routed = {"routing_policy_id": policy, "group_id": group, "timestamp": at}
    for _ in range(2):
        await journal.append(
            outcome(tenant.id, **routed, fallbacks=2, latency_ms=5000),
            outcome(tenant.id, **routed, cost_usd=None),
            outcome(tenant.id, **{**REFUSED, **routed}, status=402, error_code="cost_cap_exceeded"),
            outcome(tenant.id, timestamp=at + 1, cached_tokens=7),
        )
        await journal.drain()
    one = Decimal("0.000013")
    assert days(platform, tenant) == [
        ("2026-03-01", "sandbox", "echo", policy, group, 4, 2 * one, 2, 0, 12, 20),
        ("2026-03-01", None, None, policy, group, 2, 0, 0, 2, 0, 0),
        ("2026-03-02", "sandbox", "echo", None, None, 2, 2 * one, 0, 0, 6, 10),
    ]


@pytest.mark.parametrize("cost", ["NaN", "Infinity", "-1", "1e400", "1e999999999", "a lot"])
async def test_invalid_amounts_are_left_out_of_sums(
    platform: RunningPlatform, tenant: Tenant, journal: Journal, cost: str
) -> None:
    good = outcome(tenant.id, timestamp=MOMENT.timestamp())
    await journal.append(outcome(tenant.id, timestamp=MOMENT.timestamp(), cost_usd=cost), good)
    drain = await journal.drain()
    assert drain.status.rejected == 1
    assert minutes(platform, tenant) == [("23:59", 1, 0, 0, 0, Decimal("0.000013"), 1)]


async def test_the_application_cannot_change_figures(platform: RunningPlatform) -> None:
    for table in ("usage_minutes", "usage_hours", "routing_days", "alias_hours"):
        rights = platform.sql("SELECT has_table_privilege('gatehouse_app', %s, 'INSERT, UPDATE, DELETE')", [table])
        assert rights == [(False,)]
