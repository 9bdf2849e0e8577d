"""The counts for the series of usage by model alias and deployment."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

from tests.support.journal import Journal, opened, outcome
from tests.support.platform import RunningPlatform, Tenant

#: The last second of an hour.
MOMENT = datetime(2026, 3, 1, 22, 59, 59, tzinfo=UTC)


def hours(platform: RunningPlatform, tenant: Tenant) -> list[Any]:
    return platform.sql(
        "SELECT to_char(hour AT TIME ZONE 'UTC', 'HH24:MI'), model_alias, provider, shadow, group_id, requests, errors,"
        " blocked, cost_usd FROM alias_hours WHERE tenant_id = %s ORDER BY hour, provider, shadow, group_id",
        [tenant.id],
    )


async def test_requests_of_an_alias_are_summed_over_batches_by_the_hour_in_which_they_ended(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    group, at = uuid4(), MOMENT.timestamp()
    fast = {"timestamp": at, "model_alias": "fast"}
    refused = {"outcome": "refused", "status": 403, "error_code": "dlp_violation", "provider": None, "model_id": None}
    for _ in range(2):
        await journal.append(
            outcome(tenant.id, timestamp=at),
            outcome(tenant.id, **fast, latency_ms=999),
            outcome(tenant.id, **fast, latency_ms=1000),
            outcome(tenant.id, **fast, latency_ms=0, group_id=group, outcome="error", status=502),
            outcome(tenant.id, **fast, latency_ms=0, shadow=True),
            outcome(tenant.id, **fast, latency_ms=0, cost_usd=None, **refused),
        )
        await journal.drain()
    two = 2 * Decimal("0.000013")
    assert hours(platform, tenant) == [
        ("22:00", "fast", "sandbox", False, group, 2, 2, 0, two),
        ("22:00", "fast", "sandbox", False, None, 2, 0, 0, two),
        ("22:00", "fast", "sandbox", True, None, 2, 0, 0, two),
        ("22:00", "fast", None, False, None, 2, 0, 2, 0),
        ("23:00", "fast", "sandbox", False, None, 2, 0, 0, two),
    ]


async def test_an_interrupted_stream_of_an_alias_is_an_error(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(opened(outcome(tenant.id, timestamp=MOMENT.timestamp(), stream=True, model_alias="fast")))
    await journal.killed()
    await journal.drain()
    assert hours(platform, tenant) == [("22:00", "fast", "sandbox", False, None, 1, 1, 0, 0)]
