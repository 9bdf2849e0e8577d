"""GET /v1/audit/events and /v1/audit/actions (docs/records.md, docs/reference/platform-audit.md)."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.changes.chain.actions import ACTIONS

EVENTS = "/v1/audit/events"
FIELDS = {
    "id", "sequence", "timestamp", "actor_id", "actor_type", "action", "resource_type", "resource_id", "request_id",
    "ip", "outcome", "target_provider", "target_model", "reason", "details", "prev_hash", "hash",
}  # fmt: skip


async def read(client: httpx2.AsyncClient, **filters: Any) -> list[dict[str, Any]]:
    """Return the events of all pages."""
    events: list[dict[str, Any]] = []
    answer = await client.get(EVENTS, params=filters)
    while True:
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert set(page) == {"events", "next_cursor", "has_more", "tail_cursor"}
        events += page["events"]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            return events
        answer = await client.get(EVENTS, params={"cursor": page["next_cursor"], "limit": filters.get("limit", 50)})


async def make_events(tenant: Tenant, count: int) -> None:
    for number in range(count):
        body = {"description": f"key {number}"}
        assert (await tenant.user.client.post("/api/auth/api-keys", json=body)).status_code == 201


async def test_events_are_ordered_by_sequence_and_linked_by_hashes(tenant: Tenant) -> None:
    await make_events(tenant, 3)
    events = await read(tenant.admin.client)
    assert all(set(event) == FIELDS for event in events)
    assert [event["sequence"] for event in events] == [1, 2, 3]
    assert [event["prev_hash"] for event in events] == ["", *(event["hash"] for event in events[:-1])]
    assert {len(event["hash"]) for event in events} == {64}
    first = events[0]
    assert (first["action"], first["actor_id"], first["actor_type"]) == (
        "api_key.created", str(tenant.user.id), "user",
    )  # fmt: skip
    assert datetime.fromisoformat(first["timestamp"]).utcoffset() == timedelta(0)


async def test_one_event_is_read_by_its_sequence(tenant: Tenant, other_tenant: Tenant) -> None:
    await make_events(tenant, 3)
    await make_events(other_tenant, 4)
    assert [event["sequence"] for event in await read(tenant.admin.client, sequence=2)] == [2]
    assert await read(tenant.admin.client, sequence=2, action="login.succeeded") == []
    assert await read(tenant.admin.client, sequence=4) == []
    refused = await tenant.admin.client.get(EVENTS, params={"sequence": 0})
    assert refused.status_code == 422
    assert "sequence" in refused.text


async def test_pages_contain_every_event_once_while_others_are_written(tenant: Tenant) -> None:
    await make_events(tenant, 4)
    page = (await tenant.admin.client.get(EVENTS, params={"limit": 3})).json()
    await make_events(tenant, 2)
    rest = (await tenant.admin.client.get(EVENTS, params={"limit": 3, "cursor": page["next_cursor"]})).json()
    assert [event["sequence"] for event in page["events"] + rest["events"]] == [1, 2, 3, 4, 5, 6]
    assert (rest["has_more"], rest["next_cursor"]) == (False, None)


async def test_descending_order_has_the_same_events_and_its_tail_cursor_gives_later_ones(tenant: Tenant) -> None:
    await make_events(tenant, 5)
    newest_first = {"order": "desc", "limit": 2}
    page = (await tenant.admin.client.get(EVENTS, params=newest_first)).json()
    await make_events(tenant, 2)
    events = page["events"] + await read(tenant.admin.client, cursor=page["next_cursor"], **newest_first)
    assert [event["sequence"] for event in events] == [5, 4, 3, 2, 1]
    later = await read(tenant.admin.client, cursor=page["tail_cursor"])
    assert [event["sequence"] for event in later] == [6, 7]
    keys = await read(tenant.admin.client, action="api_key.created", **newest_first)
    assert [event["sequence"] for event in keys] == [7, 6, 5, 4, 3, 2, 1]
    # The default order, sent explicitly, is accepted with cursors that were made without it.
    oldest_first = (await tenant.admin.client.get(EVENTS, params={"order": "asc", "limit": 2})).json()
    rest = await read(tenant.admin.client, cursor=oldest_first["tail_cursor"], order="asc")
    assert [event["sequence"] for event in rest] == [3, 4, 5, 6, 7]
    changed = await tenant.admin.client.get(EVENTS, params={"cursor": page["next_cursor"], "order": "asc"})
    assert changed.status_code == 400


async def test_following_the_tail_gives_later_events_while_others_write(tenant: Tenant) -> None:
    admin = tenant.admin.client
    empty = (await admin.get(EVENTS, params={"action": "api_key.created"})).json()
    assert (empty["events"], empty["next_cursor"]) == ([], None)
    followed: list[int] = []
    cursor = empty["tail_cursor"]
    writers = [asyncio.create_task(make_events(tenant, 5)) for _ in range(4)]
    while not all(writer.done() for writer in writers) or len(followed) < 20:
        page = (await admin.get(EVENTS, params={"cursor": cursor, "limit": 3})).json()
        followed += [event["sequence"] for event in page["events"]]
        cursor = page["tail_cursor"]
        await asyncio.gather(*(writer for writer in writers if writer.done()))
    assert followed == [event["sequence"] for event in await read(admin, action="api_key.created")]
    assert len(followed) == 20
    again = (await admin.get(EVENTS, params={"cursor": cursor})).json()
    assert (again["events"], again["has_more"]) == ([], False)


async def test_an_empty_cursor_is_the_first_page(tenant: Tenant) -> None:
    await make_events(tenant, 1)
    answer = await tenant.admin.client.get(EVENTS, params={"cursor": ""})
    assert [event["sequence"] for event in answer.json()["events"]] == [1]


async def test_each_filter_applies_to_all_pages(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> None:
    await make_events(tenant, 2)
    call = outcome(tenant.id, user_id=tenant.user.id, outcome="refused", error_code="model_not_found")
    await journal.append(call)
    await journal.drain()
    key = (await read(tenant.admin.client))[0]
    client = tenant.admin.client
    assert len(await read(client, action="api_key.created", limit=1)) == 2
    assert len(await read(client, action="gateway.request")) == 1
    assert len(await read(client, actor_id=str(tenant.user.id), limit=2)) == 3
    assert len(await read(client, resource_type="api_key", resource_id=key["resource_id"])) == 1
    assert [event["id"] for event in await read(client, request_id=call.request_id)] == [str(call.id)]
    ends = datetime.now(UTC) + timedelta(seconds=60)
    assert len(await read(client, **{"from": "2020-01-01", "to": ends.isoformat()})) == 3
    assert await read(client, **{"from": ends.isoformat()}) == []
    assert await read(client, to="2020-01-01T00:00:00") == []


async def test_a_period_contains_its_events_in_whatever_order_they_were_written(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    dice, midnight = random.Random(5), datetime(2026, 3, 10, tzinfo=UTC)
    await make_events(tenant, 2)
    for _ in range(4):
        # Each batch has random times within two days, and many hours are empty. The next batch may be earlier.
        hours = [dice.randrange(48) for _ in range(3)]
        moments = [midnight + timedelta(hours=dice.choice(hours), minutes=dice.random() * 60) for _ in range(12)]
        await journal.append(*(outcome(tenant.id, timestamp=moment.timestamp()) for moment in moments))
        await journal.drain()
    everything = await read(tenant.admin.client, limit=500)
    assert len(everything) == 50
    hour = "date_trunc('hour', timestamp, 'UTC')"
    parts = f"SELECT {hour}, min(sequence), max(sequence) FROM audit_events WHERE tenant_id = %s GROUP BY 1 ORDER BY 1"
    noted = "SELECT hour, first_sequence, last_sequence FROM audit_hours WHERE tenant_id = %s ORDER BY 1"
    assert platform.sql(noted, [tenant.id]) == platform.sql(parts, [tenant.id])
    for _ in range(60):
        since, until = sorted(
            dice.choice((0, 1)) * timedelta(hours=dice.randrange(-2, 50))
            + midnight
            + timedelta(hours=dice.random() * 48)
            for _ in range(2)
        )
        period = {"from": since.isoformat(), "to": until.isoformat()}
        period_parameters = {name: period[name] for name in dice.sample(("from", "to"), dice.randint(1, 2))}
        expected = [
            event["sequence"]
            for event in everything
            if ("from" not in period_parameters or datetime.fromisoformat(event["timestamp"]) >= since)
            and ("to" not in period_parameters or datetime.fromisoformat(event["timestamp"]) < until)
        ]
        events = await read(tenant.admin.client, **period_parameters, limit=dice.choice((3, 50)))
        assert [event["sequence"] for event in events] == expected, period_parameters


async def test_a_requests_event_states_its_outcome(tenant: Tenant, journal: Journal) -> None:
    call = outcome(tenant.id, user_id=tenant.user.id, outcome="error", status=502, error_code="all_providers_failed")
    await journal.append(call)
    await journal.drain()
    (event,) = await read(tenant.admin.client, action="gateway.request")
    assert (event["outcome"], event["reason"], event["request_id"], event["ip"]) == (
        "error", "all_providers_failed", call.request_id, "203.0.113.7",
    )  # fmt: skip
    assert (event["target_provider"], event["target_model"]) == ("sandbox", "echo")
    assert event["details"]["status"] == 502
    assert event["details"]["input_tokens"] == 3


async def test_a_cursor_is_valid_only_for_its_own_list(tenant: Tenant, other_tenant: Tenant) -> None:
    await make_events(tenant, 2)
    page = (await tenant.admin.client.get(EVENTS, params={"limit": 1, "action": "api_key.created"})).json()
    cursor = page["next_cursor"]
    for client, parameters in [
        (other_tenant.admin.client, {"cursor": cursor}),
        (tenant.admin.client, {"cursor": cursor[:-2] + ("AA" if cursor[-2:] != "AA" else "BB")}),
        (tenant.admin.client, {"cursor": cursor, "action": "user.created"}),
        (tenant.admin.client, {"cursor": "made up"}),
    ]:
        answer = await client.get(EVENTS, params=parameters)
        assert answer.status_code == 400
        assert "cursor" in answer.json()["detail"]


async def test_a_tenant_sees_only_its_own_chain(tenant: Tenant, other_tenant: Tenant) -> None:
    await make_events(tenant, 1)
    assert await read(other_tenant.admin.client) == []


@pytest.mark.parametrize("path", [EVENTS, "/v1/audit/actions"])
async def test_only_permitted_roles_read(platform: RunningPlatform, tenant: Tenant, path: str) -> None:
    reader = await platform.new_m2m(tenant.id, "audit:read")
    other = await platform.new_m2m(tenant.id, "admin:read", "api:read", "dlp:read")
    for client, status in [
        (platform.anonymous, 401),
        (tenant.user.client, 403),
        (other, 403),
        (reader, 200),
        (tenant.auditor.client, 200),
        (tenant.admin.client, 200),
    ]:
        assert (await client.get(path)).status_code == status


@pytest.mark.parametrize(
    ("name", "value"), [("limit", "0"), ("limit", "501"), ("from", "yesterday"), ("to", "9999-12-31"), ("action", "\0")]
)
async def test_a_bad_parameter_is_named(tenant: Tenant, name: str, value: str) -> None:
    answer = await tenant.admin.client.get(EVENTS, params={name: value})
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", name]]


async def test_every_action_is_listed_with_its_meaning(tenant: Tenant) -> None:
    listed = (await tenant.auditor.client.get("/v1/audit/actions")).json()["actions"]
    assert {entry["action"]: entry["description"] for entry in listed} == ACTIONS
