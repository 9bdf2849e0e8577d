"""The order of GET /api/v1/usage/records (docs/records.md)."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import Tenant

from gatehouse.engine.records.outcome import Outcome
from gatehouse.platform.records import by_day

RECORDS = "/api/v1/usage/records"
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


async def listed(tenant: Tenant, **query: Any) -> list[str]:
    answer = await tenant.admin.client.get(RECORDS, params=query)
    assert answer.status_code == 200, answer.text
    return [record["id"] for record in answer.json()["records"]]


async def stored(journal: Journal, *calls: Outcome) -> list[str]:
    await journal.append(*calls)
    await journal.drain()
    return [str(call.id) for call in calls]


@pytest.mark.parametrize("filters", [{}, {"user": True}, {"key": True}, {"status": "success"}])
async def test_pages_in_the_order_of_time_contain_every_record_once(
    tenant: Tenant, journal: Journal, filters: dict[str, Any]
) -> None:
    chance = random.Random(5)
    key_id = tenant.user.id
    calls = [
        outcome(
            tenant.id, user_id=tenant.user.id, api_key_id=key_id,
            timestamp=(NOON - timedelta(hours=chance.random() * 120)).timestamp(),
        )
        for _ in range(30)
    ]  # fmt: skip
    await stored(journal, *calls)
    query = {
        **({"user_id": str(tenant.user.id)} if "user" in filters else {}),
        **({"api_key_id": str(key_id)} if "key" in filters else {}),
        **({"status": "success"} if "status" in filters else {}),
    }
    expected = [str(call.id) for call in sorted(calls, key=lambda call: call.timestamp)]
    for limit in (1, 7, 30, 200):
        seen: list[str] = []
        while len(seen) < 30:
            page = await listed(tenant, sort="timestamp", limit=limit, offset=len(seen), **query)
            assert page
            seen += page
        assert seen == expected
    assert await listed(tenant, sort="-timestamp", **query) == expected[::-1]
    assert await listed(tenant, sort="timestamp", offset=30, **query) == []


async def test_new_records_do_not_shift_the_pages_of_the_oldest(tenant: Tenant, journal: Journal) -> None:
    def call(minute: int) -> Outcome:
        return outcome(tenant.id, timestamp=(NOON + timedelta(minutes=minute)).timestamp())

    expected = await stored(journal, *map(call, range(20)))
    seen: list[str] = []
    for page in range(5):
        seen += await listed(tenant, sort="timestamp", limit=4, offset=len(seen))
        expected += await stored(journal, *(call(100 + 10 * page + number) for number in range(3)))
    assert seen == expected[:20]
    assert await listed(tenant, sort="timestamp", limit=15, offset=20) == expected[20:]


@pytest.mark.parametrize("statement", ["_spans", "_hourly", "_rows"])
async def test_records_that_arrive_while_a_page_is_read_do_not_shift_it(
    tenant: Tenant, journal: Journal, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """`statement` reads the counts by day, the counts by hour, or the records. New records arrive before it."""
    monkeypatch.setattr(by_day, "_MAX_COLLECTED_RECORDS", 5)

    def call(minute: int) -> Outcome:
        return outcome(tenant.id, timestamp=(NOON + timedelta(minutes=minute)).timestamp())

    # All of them are in one hour.
    expected = await stored(journal, *map(call, range(20)))
    original, arriving = getattr(by_day.CountedRecords, statement), list(map(call, range(30, 60)))

    async def read(records: Any, *arguments: Any, **options: Any) -> Any:
        if arriving:
            calls, arriving[:] = list(arriving), []
            await stored(journal, *calls)
        return await original(records, *arguments, **options)

    monkeypatch.setattr(by_day.CountedRecords, statement, read)
    assert await listed(tenant, sort="timestamp", limit=6, offset=9) == expected[9:15]
    assert arriving == []


async def test_values_are_sorted_and_unknown_ones_come_last(tenant: Tenant, journal: Journal) -> None:
    def call(minute: int, cost: str | None, latency_ms: float, tokens: int | None) -> Outcome:
        return outcome(
            tenant.id, timestamp=(NOON + timedelta(minutes=minute)).timestamp(), cost_usd=cost, latency_ms=latency_ms,
            input_tokens=tokens, output_tokens=tokens,
        )  # fmt: skip

    a, b, c, d = await stored(
        journal, call(1, "0.2", 30, 5), call(2, None, 60, None), call(3, "0.1", 50, 7), call(4, "0.2", 10, 5)
    )
    expected = {
        "cost_usd": [c, d, a, b], "-cost_usd": [d, a, c, b],
        "latency_ms": [d, a, c, b], "-latency_ms": [b, c, a, d],
        "tokens": [d, a, c, b], "-tokens": [c, d, a, b],
    }  # fmt: skip
    for sort, ids in expected.items():
        assert await listed(tenant, sort=sort) == ids, sort
        assert await listed(tenant, sort=sort, limit=2, offset=1) == ids[1:3], sort
    since = (NOON + timedelta(minutes=2)).isoformat().replace("+00:00", "Z")
    assert await listed(tenant, sort="-cost_usd", **{"from": since}) == [d, c, b]
    assert (await tenant.admin.client.get(RECORDS, params={"sort": "status"})).status_code == 422


async def test_many_records_are_sorted_by_time_only(
    tenant: Tenant, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_day, "MAX_SORTED_RECORDS", 2)
    early, middle, late = await stored(
        journal,
        *(
            outcome(tenant.id, timestamp=(NOON + timedelta(hours=hour)).timestamp(), cost_usd=str(hour))
            for hour in range(3)
        ),
    )
    answer = await tenant.admin.client.get(RECORDS, params={"sort": "-cost_usd"})
    assert (answer.status_code, "period" in answer.text) == (400, True)
    assert await listed(tenant, sort="timestamp") == [early, middle, late]
    until = (NOON + timedelta(hours=2)).isoformat().replace("+00:00", "Z")
    assert await listed(tenant, sort="-cost_usd", to=until) == [middle, early]


async def test_users_sort_their_own_records(tenant: Tenant, journal: Journal) -> None:
    own, _ = await stored(
        journal,
        outcome(tenant.id, user_id=tenant.user.id, timestamp=NOON.timestamp(), cost_usd="1"),
        outcome(tenant.id, user_id=tenant.admin.id, timestamp=NOON.timestamp(), cost_usd="2"),
    )
    records = (await tenant.user.client.get(RECORDS, params={"sort": "-cost_usd"})).json()["records"]
    assert [record["id"] for record in records] == [own]
