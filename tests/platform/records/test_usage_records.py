"""GET /api/v1/usage/records (docs/records.md, docs/reference/platform-usage.md)."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import Failed, Outcome
from gatehouse.foundation.ids import new_id

RECORDS = "/api/v1/usage/records"
FIELDS = {
    "id", "timestamp", "request_id", "user_id", "group_id", "api_key_id", "client_id", "provider", "model_id",
    "requested_model", "status", "stream", "input_tokens", "output_tokens", "cached_tokens", "cost_usd", "latency_ms",
    "time_to_first_token_ms", "provider_latency_ms", "fallbacks", "routing_policy_id", "dlp_action",
    "end_user", "tags", "model_alias", "shadow",
}  # fmt: skip
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


async def test_a_record_contains_these_fields(tenant: Tenant, journal: Journal) -> None:
    call = outcome(tenant.id, user_id=tenant.user.id, timestamp=NOON.timestamp(), cost_usd="0.0000000123456789012345")
    await journal.append(call)
    await journal.drain()
    answer = await tenant.admin.client.get(RECORDS)
    assert answer.headers["content-type"] == "application/json"
    page = answer.json()
    assert (page["total"], page["limit"], page["offset"]) == (1, 100, 0)
    (record,) = page["records"]
    assert set(record) == FIELDS
    assert (record["id"], record["timestamp"]) == (str(call.id), "2026-03-10T12:00:00Z")
    assert (record["status"], record["input_tokens"], record["output_tokens"]) == ("success", 3, 5)
    # The cost is a number with all its digits.
    assert '"cost_usd":0.0000000123456789012345' in answer.text or '"cost_usd":1.23456789012345E-8' in answer.text


async def test_pages_of_any_size_contain_every_record_once_newest_first(tenant: Tenant, journal: Journal) -> None:
    chance = random.Random(3)
    calls = [
        outcome(tenant.id, timestamp=(NOON - timedelta(hours=chance.random() * 120)).timestamp()) for _ in range(40)
    ]
    await journal.append(*calls)
    await journal.drain()
    expected = [str(call.id) for call in sorted(calls, key=lambda call: call.timestamp, reverse=True)]
    for limit in (1, 7, 40, 200):
        seen: list[str] = []
        while True:
            page = (await tenant.admin.client.get(RECORDS, params={"limit": limit, "offset": len(seen)})).json()
            assert page["total"] == 40
            seen += [record["id"] for record in page["records"]]
            if page["offset"] + limit >= page["total"]:
                break
        assert seen == expected
    beyond = (await tenant.admin.client.get(RECORDS, params={"offset": 40})).json()
    assert (beyond["records"], beyond["total"]) == ([], 40)


async def test_the_records_of_a_key_are_listed_for_permitted_callers(tenant: Tenant, journal: Journal) -> None:
    key, other_key = new_id(), new_id()
    calls = [
        outcome(
            tenant.id,
            user_id=tenant.user.id,
            api_key_id=key if number % 2 else other_key,
            timestamp=(NOON - timedelta(minutes=number)).timestamp(),
        )
        for number in range(6)
    ]
    await journal.append(*calls)
    await journal.drain()
    of_the_key = {"api_key_id": str(key), "limit": 2}
    for client in (tenant.admin.client, tenant.user.client):
        first = (await client.get(RECORDS, params=of_the_key)).json()
        rest = (await client.get(RECORDS, params={**of_the_key, "offset": 2})).json()
        assert (first["total"], rest["total"]) == (3, 3)
        shown = [record["id"] for record in first["records"] + rest["records"]]
        assert shown == [str(calls[number].id) for number in (1, 3, 5)]
    by_status = {"api_key_id": str(key), "status": "success", "model_id": "echo"}
    assert (await tenant.admin.client.get(RECORDS, params=by_status)).json()["total"] == 3
    assert (await tenant.admin.client.get(RECORDS, params={"api_key_id": str(new_id())})).json()["total"] == 0
    of_nobody = {**of_the_key, "user_id": str(tenant.admin.id)}
    assert (await tenant.admin.client.get(RECORDS, params=of_nobody)).json()["total"] == 0


async def test_filters_apply_to_total_and_pages(tenant: Tenant, journal: Journal) -> None:
    group, hour = new_id(), timedelta(hours=1)
    await journal.append(
        outcome(tenant.id, user_id=tenant.user.id, timestamp=NOON.timestamp(), group_id=group),
        outcome(tenant.id, user_id=tenant.user.id, timestamp=(NOON - 20 * hour).timestamp(), model_id="other"),
        outcome(tenant.id, user_id=tenant.admin.id, timestamp=(NOON + 20 * hour).timestamp(), provider="openai"),
        outcome(tenant.id, timestamp=(NOON + hour).timestamp(), provider=None, model_id=None, outcome="refused"),
    )
    await journal.drain()

    async def total(**filters: Any) -> int:
        page = (await tenant.admin.client.get(RECORDS, params=filters)).json()
        assert len(page["records"]) == page["total"]
        return int(page["total"])

    assert await total(user_id=str(tenant.user.id)) == 2
    assert await total(group_id=str(group)) == 1
    assert await total(provider="openai") == 1
    assert await total(model_id="echo") == 2
    assert await total(model_id="echo", provider="sandbox") == 1
    assert await total(model_id="nothing") == 0
    # Whole days, parts of days, and a period within one day. The start is included, the end is not.
    assert await total(**{"from": "2026-03-10", "to": "2026-03-11"}) == 2
    assert await total(**{"from": "2026-03-10T12:00:00Z"}) == 3
    assert await total(**{"from": "2026-03-10T12:00:01Z"}) == 2
    assert await total(to="2026-03-10T12:00:00Z") == 1
    assert await total(**{"from": "2026-03-10T11:30:00Z", "to": "2026-03-10T12:30:00Z"}) == 1
    assert await total(**{"from": "2026-03-10T14:00:00+02:00", "to": "2026-03-10T13:00:00"}) == 1
    assert await total(**{"from": "2026-03-12", "to": "2026-03-01"}) == 0


async def test_records_are_filtered_by_status_and_request_id(
    tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    calls = {status: outcome(tenant.id, outcome=status) for status in ("success", "refused", "error", "cancelled")}
    foreign = outcome(other_tenant.id, outcome="error")
    await journal.append(*calls.values(), foreign)
    await journal.drain()

    async def seen(**filters: Any) -> list[str]:
        page = (await tenant.admin.client.get(RECORDS, params=filters)).json()
        assert page["total"] == len(page["records"])
        return [record["id"] for record in page["records"]]

    for status, call in calls.items():
        assert await seen(status=status) == [str(call.id)]
        assert await seen(request_id=call.request_id) == [str(call.id)]
    assert await seen(status="interrupted") == []
    assert await seen(status="error", request_id=calls["refused"].request_id) == []
    assert await seen(request_id=foreign.request_id) == []
    of_the_user = {"request_id": calls["error"].request_id}
    assert (await tenant.user.client.get(RECORDS, params=of_the_user)).json()["records"] == []


async def test_a_record_is_read_by_its_id(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    now = datetime.now(UTC)
    ages = (timedelta(0), timedelta(minutes=40), timedelta(hours=20))
    mine, *slow = (
        outcome(tenant.id, user_id=tenant.user.id, timestamp=(now - age).timestamp(), cost_usd="0.00000001234567890123")
        for age in ages
    )
    theirs = outcome(tenant.id, user_id=tenant.admin.id)
    await journal.append(mine, *slow, theirs)
    await journal.drain()
    (listed,) = (await tenant.user.client.get(RECORDS, params={"request_id": mine.request_id})).json()["records"]
    answer = await tenant.user.client.get(f"{RECORDS}/{mine.id}")
    attempt = {
        "provider": "sandbox",
        "model_id": "echo",
        "status": None,
        "reason": None,
        "duration_ms": None,
        "credential": None,
    }
    assert answer.json() == {**listed, "error_code": None, "cache": None, "attempts": [attempt]}
    assert set(listed) == FIELDS
    assert '"cost_usd":1.234567890123E-8' in answer.text
    for call in slow:
        # An id contains the time at which its request ended. Here, this is long after the record's `timestamp`.
        assert (await tenant.auditor.client.get(f"{RECORDS}/{call.id}")).status_code == 200
    for client, call_id, status in (
        (platform.anonymous, mine.id, 401),
        (await platform.new_m2m(tenant.id, "chat:write"), mine.id, 403),
        (await platform.new_m2m(tenant.id, "api:read"), mine.id, 200),
        (tenant.user.client, theirs.id, 404),
        (other_tenant.admin.client, mine.id, 404),
        (tenant.admin.client, new_id(), 404),
        (tenant.admin.client, uuid4(), 404),
        (tenant.admin.client, "nonsense", 404),
        (tenant.admin.client, "ffffffff-ffff-7fff-bfff-ffffffffffff", 404),
        (tenant.admin.client, "00000000-0000-7000-8000-000000000000", 404),
    ):
        answer = await client.get(f"{RECORDS}/{call_id}")
        assert answer.status_code == status, answer.text


async def test_a_record_lists_every_attempt(tenant: Tenant, journal: Journal) -> None:
    busy = Failed(provider="one", model_id="m", status=503, reason="http_503", duration_ms=12.5)
    slow = Failed(provider="sandbox", model_id="echo", status=None, reason="timeout", duration_ms=2000.0)
    skipped = Failed(provider="two", model_id="n", status=None, reason="circuit_open")
    answered = outcome(tenant.id, attempts=(busy, skipped), attempt_ms=30.25, fallbacks=2)
    retried = outcome(tenant.id, attempts=(slow,), attempt_ms=7.5)
    # The provider may charge for a call that timed out, so its record names the model.
    timed_out = outcome(tenant.id, attempts=(busy, slow), outcome="error", status=504, error_code="provider_timeout")
    refused = outcome(
        tenant.id, provider=None, model_id=None, outcome="refused", status=403, error_code="dlp_violation"
    )
    cached = outcome(tenant.id, cache="hit")
    await journal.append(answered, retried, timed_out, refused, cached)
    await journal.drain()

    async def attempts(call: Outcome[UUID]) -> list[tuple[Any, ...]]:
        record = (await tenant.admin.client.get(f"{RECORDS}/{call.id}")).json()
        assert (record["error_code"], record["cache"]) == (call.error_code, call.cache)
        names = ("provider", "model_id", "status", "reason", "duration_ms")
        return [tuple(attempt[name] for name in names) for attempt in record["attempts"]]

    assert await attempts(answered) == [
        ("one", "m", 503, "http_503", 12.5),
        ("two", "n", None, "circuit_open", None),
        ("sandbox", "echo", None, None, 30.25),
    ]
    timeout = ("sandbox", "echo", None, "timeout", 2000.0)
    assert await attempts(retried) == [timeout, ("sandbox", "echo", None, None, 7.5)]
    assert await attempts(timed_out) == [("one", "m", 503, "http_503", 12.5), timeout]
    assert await attempts(refused) == []
    assert await attempts(cached) == []


async def test_a_user_sees_only_their_own_records(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> None:
    mine = outcome(tenant.id, user_id=tenant.user.id)
    theirs = outcome(tenant.id, user_id=tenant.admin.id)
    machines = outcome(tenant.id, client_id=new_id(), actor_type="oauth_client")
    await journal.append(mine, theirs, machines)
    await journal.drain()

    async def seen(client: Any, **filters: Any) -> set[str]:
        return {record["id"] for record in (await client.get(RECORDS, params=filters)).json()["records"]}

    assert await seen(tenant.user.client) == {str(mine.id)}
    assert await seen(platform.client(await platform.new_key(tenant.user))) == {str(mine.id)}
    assert await seen(tenant.user.client, user_id=str(tenant.admin.id)) == set()
    everything = {str(call.id) for call in (mine, theirs, machines)}
    for client in (tenant.admin.client, tenant.auditor.client, await platform.new_m2m(tenant.id, "api:read")):
        assert await seen(client) == everything


async def test_another_tenant_sees_nothing(tenant: Tenant, other_tenant: Tenant, journal: Journal) -> None:
    await journal.append(outcome(tenant.id))
    await journal.drain()
    page = (await other_tenant.admin.client.get(RECORDS)).json()
    assert (page["records"], page["total"]) == ([], 0)


async def test_a_client_needs_the_scope(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.anonymous.get(RECORDS)).status_code == 401
    assert (await (await platform.new_m2m(tenant.id, "chat:write")).get(RECORDS)).status_code == 403


@pytest.mark.parametrize(
    ("name", "value"),
    [("limit", "0"), ("limit", "201"), ("offset", "-1"), ("user_id", "me"), ("from", "x"), ("model_id", "\0"),
     ("status", "good"), ("request_id", "\0")],
)  # fmt: skip
async def test_a_bad_parameter_is_named(tenant: Tenant, name: str, value: str) -> None:
    answer = await tenant.user.client.get(RECORDS, params={name: value})
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", name]]
