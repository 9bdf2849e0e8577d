"""The end user and the tags of calls are recorded, shown, and used as filters of GET /api/v1/usage/records."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.support.journal import Journal, opened, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import encode
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.settings import Settings

RECORDS = "/api/v1/usage/records"
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
MESSAGES = [{"role": "user", "content": "hi"}]


async def listed(client: httpx2.AsyncClient, **filters: Any) -> list[dict[str, Any]]:
    answer = await client.get(RECORDS, params=filters)
    assert answer.status_code == 200, answer.text
    page = answer.json()
    assert len(page["records"]) == min(page["total"], page["limit"])
    records: list[dict[str, Any]] = page["records"]
    return records


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES, "user": "customer 1"}),
        ("/v1/responses", {"input": "hi", "safety_identifier": "customer 1"}),
        ("/v1/messages", {"messages": MESSAGES, "max_tokens": 9, "metadata": {"user_id": "customer 1"}}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_is_found_by_its_end_user_and_each_of_its_tags(
    platform: RunningPlatform,
    tenant: Tenant,
    other_tenant: Tenant,
    settings: Settings,
    path: str,
    body: dict[str, Any],
    stream: bool,
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    async with (
        platform.listening() as url,
        httpx2.AsyncClient(base_url=url, headers={"X-API-Key": await platform.new_key(tenant.user)}) as http,
    ):
        # Two header lines form one list. One call has neither.
        tags = [("X-Gateway-Tags", "team=search, env=prod"), ("X-Gateway-Tags", "v:2")]
        tagged = await http.post(path, json={"model": "sandbox/echo", "stream": stream, **body}, headers=tags)
        plain = await http.post("/v1/chat/completions", json={"model": "sandbox/echo", "messages": MESSAGES})
    assert (tagged.status_code, plain.status_code) == (200, 200)
    await Journal(platform.installed.url, settings.gatehouse_home / "journal").drain()
    for client in (tenant.admin.client, tenant.auditor.client, tenant.user.client):
        for filters in ({"end_user": "customer 1"}, {"tag": "team=search"}, {"tag": "env=prod"}, {"tag": "v:2"}):
            (record,) = await listed(client, **filters)
            assert record["request_id"] == tagged.headers["X-Request-Id"]
            assert (record["end_user"], record["tags"]) == ("customer 1", ["team=search", "env=prod", "v:2"])
        assert await listed(client, tag="team") == []
        assert await listed(client, end_user="customer") == []
        assert len(await listed(client)) == 2
    (other,) = [record for record in await listed(tenant.admin.client) if not record["tags"]]
    assert other["end_user"] is None
    for filters in ({"end_user": "customer 1"}, {"tag": "v:2"}):
        assert await listed(other_tenant.admin.client, **filters) == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_bad_header_is_400_and_named(platform: RunningPlatform, tenant: Tenant, path: str) -> None:
    answer = await tenant.user.client.post(path, json={}, headers={"X-Gateway-Tags": "a b"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "X-Gateway-Tags")


async def test_filters_can_be_combined_and_pages_contain_every_record_once(tenant: Tenant, journal: Journal) -> None:
    calls = [
        outcome(
            tenant.id,
            user_id=tenant.user.id if number % 2 else tenant.admin.id,
            end_user=f"customer-{number % 3}",
            tags=("all", f"third={number % 3}"),
            timestamp=(NOON - timedelta(hours=number)).timestamp(),
        )
        for number in range(12)
    ]
    await journal.append(*calls, outcome(tenant.id, timestamp=NOON.timestamp()))
    await journal.drain()
    client, ids = tenant.admin.client, [str(call.id) for call in calls]
    pages = [await listed(client, tag="all", limit=5, offset=offset) for offset in (0, 5)]
    assert [record["id"] for page in pages for record in page] == ids[:10]
    assert [record["id"] for record in await listed(client, tag="third=1", end_user="customer-1")] == ids[1::3]
    assert await listed(client, tag="third=1", end_user="customer-2") == []
    mine = await listed(client, tag="third=1", user_id=str(tenant.user.id), model_id="echo")
    assert [record["id"] for record in mine] == [ids[1], ids[7]]
    assert [record["id"] for record in await listed(tenant.user.client, tag="third=1")] == [ids[1], ids[7]]
    since = (NOON - timedelta(hours=4)).isoformat()
    assert [record["id"] for record in await listed(client, end_user="customer-1", **{"from": since})] == ids[1:5:3]


async def test_a_long_end_user_is_found_by_the_callers_value(tenant: Tenant, journal: Journal) -> None:
    await journal.append(outcome(tenant.id, end_user="x" * 256))
    await journal.drain()
    assert len(await listed(tenant.admin.client, end_user="x" * 300)) == 1
    assert await listed(tenant.admin.client, end_user="\x01") == []


@pytest.mark.parametrize(
    ("name", "value"), [("tag", ""), ("tag", "a b"), ("tag", "x" * 65), ("tag", "a\n"), ("end_user", "\0")]
)
async def test_a_bad_filter_is_named(tenant: Tenant, name: str, value: str) -> None:
    answer = await tenant.user.client.get(RECORDS, params={name: value})
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", name]]


async def test_entries_of_the_previous_version_are_stored_together_with_new_ones(
    tenant: Tenant, journal: Journal
) -> None:
    new, old = outcome(tenant.id, end_user="customer-1", tags=('a"\\', "b")), outcome(tenant.id)
    await journal.append(new, json.dumps(json.loads(encode(old))[:-2]).encode())
    await journal.drain()
    shown = {record["id"]: (record["end_user"], record["tags"]) for record in await listed(tenant.admin.client)}
    assert shown == {str(new.id): ("customer-1", ['a"\\', "b"]), str(old.id): (None, [])}


async def test_a_record_that_the_previous_version_inserts_is_shown(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.sql(
        "INSERT INTO usage_records (tenant_id, id, timestamp, request_id, status, stream)"
        " VALUES (%s, %s, now(), 'r', 'success', false)",
        [tenant.id, new_id()],
    )
    (record,) = await listed(tenant.admin.client)
    assert (record["end_user"], record["tags"]) == (None, [])


async def test_an_interrupted_stream_has_its_end_user_and_tags(tenant: Tenant, journal: Journal) -> None:
    call = outcome(tenant.id, stream=True, end_user="customer-1", tags=("a",))
    await journal.append(opened(call))
    await journal.killed()
    await journal.drain()
    (record,) = await listed(tenant.admin.client, tag="a", end_user="customer-1")
    assert (record["id"], record["status"]) == (str(call.id), "interrupted")


async def test_the_audit_chain_contains_neither_end_user_nor_tags(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(outcome(tenant.id, end_user="customer-1", tags=("a=b",)))
    await journal.drain()
    (event,) = await platform.audit(tenant, "gateway.request")
    assert "customer-1" not in str(event)
    assert "a=b" not in str(event)
