"""The counts for the usage list equal the records after every change, and pages that use them equal those without."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import Outcome
from gatehouse.foundation.ids import new_id
from gatehouse.platform.records import by_day

RECORDS = "/api/v1/usage/records"
MIDNIGHT = datetime(2026, 3, 10, tzinfo=UTC)
FOLD = "SELECT gatehouse_fold_usage_counts()"
KINDS = ("user_id", "group_id", "provider", "model_id")
OF_USERS = "(SELECT * FROM usage_counts UNION ALL SELECT * FROM usage_count_deltas) AS counts"


def random_calls(tenant: Tenant, count: int) -> list[Outcome[UUID]]:
    """Create calls on three days, most of them within two hours."""
    dice, groups, users = random.Random(count), [new_id(), None], [tenant.user.id, tenant.admin.id, None]
    calls = []
    for _ in range(count):
        minutes = dice.choice((dice.random() * 120, dice.random() * 3 * 24 * 60))
        model = dice.choice((("openai", "mini"), ("openai", "large"), ("sandbox", "echo"), (None, None)))
        calls.append(
            outcome(
                tenant.id, timestamp=(MIDNIGHT + timedelta(minutes=minutes)).timestamp(), user_id=dice.choice(users),
                group_id=dice.choice(groups), provider=model[0], model_id=model[1],
            )
        )  # fmt: skip
    return calls


def counted(platform: RunningPlatform, tenant: Tenant, table: str, what: str) -> Counter[tuple[Any, ...]]:
    rows = platform.sql(f"SELECT {what}, sum(records) FROM {table} WHERE tenant_id = %s GROUP BY {what}", [tenant.id])
    return Counter({row[:-1]: int(row[-1]) for row in rows if row[-1]})


def assert_counts_are_the_records(platform: RunningPlatform, tenant: Tenant) -> int:
    day, hour = "(timestamp AT TIME ZONE 'UTC')::date", "date_trunc('hour', timestamp, 'UTC')"
    without_users = "group_id, provider, model_id"
    records = "(SELECT *, 1 AS records FROM usage_records) AS each"
    for table, moment, moments, kinds in (
        (OF_USERS, "day", day, f"user_id, {without_users}"),
        ("usage_totals", "day", day, without_users),
        ("usage_hour_totals", "hour", hour, without_users),
    ):
        there = counted(platform, tenant, records, f"{moments}, {kinds}")
        assert counted(platform, tenant, table, f"{moment}, {kinds}") == there
    return sum(there.values())


async def test_counts_equal_the_records_whatever_adds_or_removes_them(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(*random_calls(tenant, 60))
    await journal.drain()
    assert assert_counts_are_the_records(platform, tenant) == 60
    platform.sql(FOLD)
    await journal.append(*random_calls(tenant, 40))
    await journal.drain()
    platform.sql("INSERT INTO usage_records (tenant_id, id, timestamp, request_id, status, stream)"
                 " VALUES (%s, gen_random_uuid(), %s, 'r', 'success', false)", [tenant.id, MIDNIGHT])  # fmt: skip
    # Count like the keeper of the previous version.
    platform.sql("INSERT INTO usage_counts (tenant_id, day, records) VALUES (%s, %s, 1) ON CONFLICT (tenant_id, day,"
                 " user_id, group_id, provider, model_id) DO UPDATE SET records = usage_counts.records + 1",
                 [tenant.id, MIDNIGHT.date()])  # fmt: skip
    assert assert_counts_are_the_records(platform, tenant) == 101
    for folded in (True, False):
        platform.sql(
            "WITH gone AS (DELETE FROM usage_records WHERE tenant_id = %s AND id IN (SELECT id FROM usage_records"
            " WHERE tenant_id = %s ORDER BY id LIMIT 60) RETURNING *) INSERT INTO usage_count_deltas"
            " SELECT tenant_id, (timestamp AT TIME ZONE 'UTC')::date, user_id, group_id, provider, model_id, -count(*)"
            " FROM gone GROUP BY 1, 2, 3, 4, 5, 6",
            [tenant.id, tenant.id],
        )
        if folded:
            platform.sql(FOLD)
        assert_counts_are_the_records(platform, tenant)
    platform.sql(FOLD)
    for table in ("usage_counts", "usage_count_deltas", "usage_totals", "usage_hour_totals"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [tenant.id]) == [(0,)]


async def test_concurrent_folding_counts_each_record_once(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(*random_calls(tenant, 60))
    await journal.drain()
    with psycopg.connect(platform.installed.owner_url) as first:
        assert first.execute(FOLD).fetchone() >= (1,)
        # No process waits for another that folds counts.
        assert platform.sql(FOLD) == [(0,)]
        # A concurrent reader sees each record counted once.
        assert assert_counts_are_the_records(platform, tenant) == 60
    assert assert_counts_are_the_records(platform, tenant) == 60
    crowd = [threading.Thread(target=lambda: platform.sql(FOLD)) for _ in range(4)]
    for client in crowd:
        client.start()
    await journal.append(*random_calls(tenant, 30))
    await journal.drain()
    for client in crowd:
        client.join()
    assert assert_counts_are_the_records(platform, tenant) == 90


@pytest.mark.parametrize("few", [1, 5, 2_000])
async def test_pages_equal_those_computed_from_the_records(
    platform: RunningPlatform, tenant: Tenant, journal: Journal, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(by_day, "_MAX_COLLECTED_RECORDS", few)
    calls = random_calls(tenant, 300)
    await journal.append(*calls[:200])
    await journal.drain()
    platform.sql(FOLD)
    await journal.append(*calls[200:])
    await journal.drain()
    calls.sort(key=lambda call: (call.timestamp, call.id), reverse=True)
    dice = random.Random(few)
    for _ in range(60):
        like = dice.choice(calls)
        filters: dict[str, Any] = {
            name: getattr(like, name)
            for name in dice.sample(KINDS, dice.randint(0, 2))
            if getattr(like, name) is not None
        }
        since, until = sorted(_moment(dice) for _ in range(2))
        inside: list[Callable[[Outcome[UUID]], bool]] = []
        params: dict[str, Any] = {name: str(value) for name, value in filters.items()}
        if dice.random() < 0.5:
            params["from"] = since.isoformat()
            inside.append(lambda call, since=since: call.timestamp >= since.timestamp())
        if dice.random() < 0.5:
            params["to"] = until.isoformat()
            inside.append(lambda call, until=until: call.timestamp < until.timestamp())
        expected = [
            str(call.id)
            for call in calls
            if all(getattr(call, name) == value for name, value in filters.items())
            and all(item(call) for item in inside)
        ]
        limit, offset = dice.randint(1, 40), dice.randint(0, len(expected) + 2)
        page = (
            await tenant.admin.client.get(RECORDS, params={**params, "limit": str(limit), "offset": str(offset)})
        ).json()
        assert page["total"] == len(expected), params
        assert [record["id"] for record in page["records"]] == expected[offset : offset + limit], params


def _moment(dice: random.Random) -> datetime:
    """Return a random time. Many are at the start of a day or an hour."""
    minutes = dice.choice((dice.random() * 130, dice.random() * 3 * 24 * 60))
    moment = MIDNIGHT + timedelta(minutes=minutes)
    return dice.choice(
        (moment, moment.replace(minute=0, second=0, microsecond=0), MIDNIGHT + timedelta(days=dice.randint(0, 3)))
    )


async def test_the_application_role_cannot_change_counts(platform: RunningPlatform) -> None:
    for table in ("usage_counts", "usage_count_deltas", "usage_totals", "usage_hour_totals", "audit_hours"):
        rights = platform.sql("SELECT has_table_privilege('gatehouse_app', %s, 'INSERT, UPDATE, DELETE')", [table])
        assert rights == [(False,)]
    assert platform.sql("SELECT has_function_privilege('gatehouse_app', 'gatehouse_fold_usage_counts()', 'EXECUTE')"
                        ) == [(False,)]  # fmt: skip
