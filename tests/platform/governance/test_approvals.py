"""Approvals: the endpoints, and the wait of a held request for its decision (docs/approvals.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb
from tests.support.platform import RunningPlatform, Tenant
from tests.support.relay import relay

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import CallRequest, Identified, Received
from gatehouse.engine.verdict import Ask
from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live import approvals as live
from gatehouse.platform.live.approvals import (
    ApprovalUnavailable,
    LiveApprovals,
    TooManyWaitingRequests,
    WorkerStopping,
)
from gatehouse.platform.live.nodes import Node

BASE = "/api/admin/approvals"
ASK = Ask(reason="Cards found credit_card", rule_id="r-1", rule_name="Cards", entity_types=("credit_card",))


def add(platform: RunningPlatform, tenant: Tenant, **fields: Any) -> str:
    values = {
        "id": new_id(), "tenant_id": tenant.id, "request_id": "r", "user_id": tenant.user.id, "reason": "Cards found",
        "rule_id": "r-1", "rule_name": "Cards", "entity_types": Jsonb(["credit_card"]), "node": platform.host.node.id,
        "model": "sandbox/echo", **fields,
    }  # fmt: skip
    columns = f"{', '.join(values)}, expires_at"
    marks = ", ".join(["%s"] * len(values))
    platform.sql(
        f"INSERT INTO approvals ({columns}) VALUES ({marks}, now() + interval '1 minute')", list(values.values())
    )
    return str(values["id"])


async def new_request(platform: RunningPlatform, tenant: Tenant) -> CallRequest:
    received = Received(
        request_id=f"held-{uuid4().hex}", method="POST", path="/v1/chat/completions", headers={},
        client_address="203.0.113.7", received_at=0.0, started=0.0,
    )  # fmt: skip
    caller = Caller(kind=CallerKind.USER, tenant_id=TenantId(tenant.id), user_id=tenant.user.id)
    policy = await platform.host.policies.current(TenantId(tenant.id))
    call = DIALECTS["openai_chat"].decode(
        b'{"model": "sandbox/echo", "messages": [{"role": "user", "content": "4111 1111 1111 1111"}]}', {}
    )
    return CallRequest(
        identified=Identified(received=received, caller=caller, policy=policy, scope="chat:write"), call=call
    )


@asynccontextmanager
async def port(platform: RunningPlatform, *, seconds: float = 20, url: str | None = None) -> AsyncIterator[Any]:
    """Run the approvals of another worker. The platform's endpoints decide them."""
    database = Database(url or platform.installed.url, pool_size=1)
    created = LiveApprovals(database, platform.host.node, platform.host.replica, seconds=seconds)
    try:
        yield created
    finally:
        if url is None:
            await created.stop()
        await database.close()


def approval_row(platform: RunningPlatform, x: CallRequest) -> tuple[Any, ...] | None:
    rows = platform.sql(
        "SELECT id, status, decided_at FROM approvals WHERE request_id = %s", [x.identified.received.request_id]
    )
    result: tuple[Any, ...] | None = rows[0] if rows else None
    return result


async def wait_for_approval(platform: RunningPlatform, x: CallRequest) -> UUID:
    async with asyncio.timeout(60):
        while (row := approval_row(platform, x)) is None:
            await asyncio.sleep(0.01)
    approval_id: UUID = row[0]
    return approval_id


async def wait_until_polling() -> None:
    """Wait until the worker knows that its approval is stored. Other processes may see the row earlier."""
    async with asyncio.timeout(60):
        while all(task.get_name() != "approvals" for task in asyncio.all_tasks()):
            await asyncio.sleep(0.01)


async def wait_until_ended(platform: RunningPlatform, x: CallRequest) -> str:
    async with asyncio.timeout(60):
        while (row := approval_row(platform, x)) is None or row[1] == "pending":
            await asyncio.sleep(0.01)
    return str(row[1])


# the endpoints -------------------------------------------------------------------------------------------------------


async def test_the_list_is_paged_newest_first_and_filtered_by_status(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    first, second = add(platform, tenant), add(platform, tenant, status="denied")
    third = add(platform, tenant, direction="output")
    add(platform, other_tenant)

    async def listed(**query: Any) -> tuple[list[str], int]:
        page = (await tenant.auditor.client.get(BASE, params=query)).json()
        return [item["id"] for item in page["items"]], page["total"]

    assert await listed() == ([third, second, first], 3)
    assert await listed(status="pending") == ([third, first], 2)
    assert await listed(page=2, page_size=2) == ([first], 3)
    page = (await tenant.auditor.client.get(BASE, params={"page_size": 1})).json()
    assert (page["page"], page["page_size"]) == (1, 1)


async def test_the_list_is_sorted_by_time_and_those_that_wait_also_by_their_end(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    first, second, third = (add(platform, tenant) for _ in range(3))
    for minutes, approval in ((2, first), (9, second), (5, third)):
        query = "UPDATE approvals SET expires_at = now() + make_interval(mins => %s) WHERE id = %s"
        platform.sql(query, [minutes, approval])

    async def listed(**query: Any) -> list[str]:
        page = (await tenant.auditor.client.get(BASE, params=query)).json()
        return [item["id"] for item in page["items"]]

    assert await listed(sort="created_at") == [first, second, third]
    assert await listed(sort="-created_at", status="pending") == [third, second, first]
    assert await listed(sort="expires_at", status="pending") == [first, third, second]
    assert await listed(sort="-expires_at", status="pending", page_size=2) == [second, third]
    for query in ({"sort": "expires_at"}, {"sort": "-expires_at", "status": "denied"}):
        answer = await tenant.auditor.client.get(BASE, params=query)
        assert (answer.status_code, "status=pending" in answer.text) == (400, True)
    assert (await tenant.auditor.client.get(BASE, params={"sort": "reason"})).status_code == 422


async def test_an_approval_describes_its_request(platform: RunningPlatform, tenant: Tenant) -> None:
    approval_id = add(platform, tenant)
    body = (await tenant.auditor.client.get(f"{BASE}/{approval_id}")).json()
    assert body.pop("created_at") < body.pop("expires_at")
    assert body == {
        "id": approval_id, "request_id": "r", "user_id": str(tenant.user.id), "client_id": None,
        "reason": "Cards found", "rule_id": "r-1", "rule_name": "Cards",
        "entity_types": ["credit_card"], "direction": "input", "model": "sandbox/echo", "status": "pending",
        "decided_at": None, "decided_by": None, "decision_reason": None,
    }  # fmt: skip


@pytest.mark.parametrize(("verb", "status"), [("approve", "approved"), ("deny", "denied")])
@pytest.mark.parametrize("body", [{"json": {"reason": "seen"}}, {}])
async def test_a_decision_records_the_person_and_the_reason(
    platform: RunningPlatform, tenant: Tenant, verb: str, status: str, body: dict[str, Any]
) -> None:
    approval_id = add(platform, tenant)
    answer = await tenant.admin.client.post(f"{BASE}/{approval_id}/{verb}", **body)
    response_body = answer.json()
    assert (answer.status_code, response_body["status"], response_body["decided_by"]) == (
        200,
        status,
        str(tenant.admin.id),
    )
    assert response_body["decision_reason"] == ("seen" if body else None)
    assert response_body == (await tenant.auditor.client.get(f"{BASE}/{approval_id}")).json()
    (event,) = await platform.audit(tenant, f"approval.{status}")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), approval_id)
    assert event["reason"] == response_body["decision_reason"]
    assert event["details"] == {"held_request_id": "r", "rule_id": "r-1", "rule_name": "Cards", "direction": "input"}


@pytest.mark.parametrize("verb", ["approve", "deny"])
@pytest.mark.parametrize("status", ["approved", "denied", "expired", "cancelled"])
async def test_a_decision_is_final(platform: RunningPlatform, tenant: Tenant, verb: str, status: str) -> None:
    approval_id = add(platform, tenant, status=status)
    answer = await tenant.admin.client.post(f"{BASE}/{approval_id}/{verb}", json={})
    assert (answer.status_code, answer.json()["status"]) == (409, status)
    assert (await tenant.admin.client.get(f"{BASE}/{approval_id}")).json()["status"] == status


async def test_one_of_several_concurrent_decisions_is_accepted(platform: RunningPlatform, tenant: Tenant) -> None:
    approval_id = add(platform, tenant)
    answers = await asyncio.gather(
        *(tenant.admin.client.post(f"{BASE}/{approval_id}/{verb}", json={}) for verb in ("approve", "deny") * 4)
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7


async def test_an_overdue_approval_is_shown_as_expired(platform: RunningPlatform, tenant: Tenant) -> None:
    approval_id = add(platform, tenant)
    platform.sql("UPDATE approvals SET expires_at = now() WHERE id = %s", [approval_id])
    answer = await tenant.admin.client.post(f"{BASE}/{approval_id}/approve", json={})
    assert (answer.status_code, answer.json()["status"]) == (409, "expired")


async def test_another_organizations_approval_is_not_found(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    approval_id = add(platform, tenant)
    for path in (approval_id, str(uuid4())):
        for method, suffix in (("GET", ""), ("POST", "/approve"), ("POST", "/deny")):
            answer = await other_tenant.admin.client.request(method, f"{BASE}/{path}{suffix}")
            assert (answer.status_code, answer.json()) == (404, {"detail": "Approval not found"})


async def test_administrators_decide_and_auditors_read(platform: RunningPlatform, tenant: Tenant) -> None:
    approval_id = add(platform, tenant)
    reader = await platform.new_m2m(tenant.id, "admin:read")
    writer = await platform.new_m2m(tenant.id, "admin:write")
    for client, reading, deciding in [
        (platform.anonymous, 401, 401), (tenant.user.client, 403, 403), (tenant.auditor.client, 200, 403),
        (reader, 200, 403), (writer, 403, 200),
    ]:  # fmt: skip
        assert (await client.get(BASE)).status_code == reading
        assert (await client.get(f"{BASE}/{approval_id}")).status_code == reading
        assert (await client.post(f"{BASE}/{approval_id}/deny", json={})).status_code == deciding


@pytest.fixture
def by_machines(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = platform.host.settings.model_copy(update={"approval_by_machines": True})
    monkeypatch.setattr(platform.host, "settings", changed)


async def new_admin_client(platform: RunningPlatform, tenant: Tenant, maker: UUID) -> tuple[Any, UUID]:
    client = await platform.new_m2m(tenant.id, "admin:write")
    ((client_id,),) = platform.sql(
        "UPDATE oauth_clients SET created_by = %s WHERE tenant_id = %s RETURNING client_id", [maker, tenant.id]
    )
    return client, client_id


async def test_nobody_approves_their_own_request_and_the_attempt_is_audited(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    own = add(platform, tenant, user_id=tenant.admin.id)
    answer = await tenant.admin.client.post(f"{BASE}/{own}/approve", json={})
    assert (answer.status_code, answer.json()["code"]) == (403, "own_request")
    assert (await tenant.admin.client.get(f"{BASE}/{own}")).json()["status"] == "pending"
    (event,) = await platform.audit(tenant, "approval.refused")
    assert (event["actor_id"], event["outcome"], event["reason"]) == (str(tenant.admin.id), "failure", "own_request")
    assert event["details"] == {"held_request_id": "r", "rule_id": "r-1"}
    assert (await tenant.admin.client.post(f"{BASE}/{own}/deny", json={})).status_code == 200


async def test_a_clients_creator_cannot_approve_its_requests(platform: RunningPlatform, tenant: Tenant) -> None:
    _, client_id = await new_admin_client(platform, tenant, tenant.admin.id)
    approval_id = add(platform, tenant, user_id=None, client_id=client_id)
    answer = await tenant.admin.client.post(f"{BASE}/{approval_id}/approve", json={})
    assert (answer.status_code, answer.json()["code"]) == (403, "own_request")


async def test_the_creator_of_a_service_accounts_key_cannot_approve_its_requests(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    account = {"email": f"bot@{tenant.slug}.test", "role": "user", "kind": "service"}
    created = await tenant.admin.client.post("/api/admin/users", json=account)
    assert created.status_code == 201, created.text
    account_id = created.json()["id"]
    key = await tenant.admin.client.post(f"/api/admin/users/{account_id}/api-keys", json={"description": "bot"})
    assert key.status_code == 201, key.text
    approval_id = add(platform, tenant, user_id=UUID(account_id))
    answer = await tenant.admin.client.post(f"{BASE}/{approval_id}/approve", json={})
    assert (answer.status_code, answer.json()["code"]) == (403, "own_request")
    other = await platform.new_person(tenant.id, "admin")
    assert (await other.client.post(f"{BASE}/{approval_id}/approve", json={})).status_code == 200


async def test_keys_and_clients_cannot_approve(platform: RunningPlatform, tenant: Tenant) -> None:
    approval_id = add(platform, tenant)
    client, _ = await new_admin_client(platform, tenant, tenant.auditor.id)
    key = platform.client(await platform.new_key(tenant.admin))
    for machine in (client, key):
        answer = await machine.post(f"{BASE}/{approval_id}/approve", json={})
        assert (answer.status_code, answer.json()["code"]) == (403, "person_required")
    assert len(await platform.audit(tenant, "approval.refused")) == 2


@pytest.mark.usefixtures("by_machines")
async def test_machines_that_may_approve_cannot_approve_their_own_requests(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    client, client_id = await new_admin_client(platform, tenant, tenant.admin.id)
    key = platform.client(await platform.new_key(tenant.admin))
    for machine, owner in (
        (client, {"user_id": None, "client_id": client_id}),
        (client, {"user_id": tenant.admin.id}),
        (key, {"user_id": tenant.admin.id}),
        (key, {"user_id": None, "client_id": client_id}),
    ):
        answer = await machine.post(f"{BASE}/{add(platform, tenant, **owner)}/approve", json={})
        assert (answer.status_code, answer.json()["code"]) == (403, "own_request")
    for machine in (client, key):
        answer = await machine.post(f"{BASE}/{add(platform, tenant)}/approve", json={})
        assert (answer.status_code, answer.json()["status"]) == (200, "approved")


@pytest.mark.usefixtures("by_machines")
async def test_a_service_accounts_key_does_not_approve_its_creators_request(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    account = {"email": f"bot@{tenant.slug}.test", "role": "admin", "kind": "service"}
    created = await tenant.admin.client.post("/api/admin/users", json=account)
    assert created.status_code == 201, created.text
    keys = f"/api/admin/users/{created.json()['id']}/api-keys"
    key = await tenant.admin.client.post(keys, json={"description": "bot"})
    assert key.status_code == 201, key.text
    machine = platform.client(key.json()["api_key"])
    answer = await machine.post(f"{BASE}/{add(platform, tenant, user_id=tenant.admin.id)}/approve", json={})
    assert (answer.status_code, answer.json()["code"]) == (403, "own_request")
    assert (await machine.post(f"{BASE}/{add(platform, tenant)}/approve", json={})).status_code == 200


@pytest.mark.parametrize(
    ("params", "body", "loc"),
    [
        ({"status": "odd"}, None, ["query", "status"]),
        ({"page_size": 201}, None, ["query", "page_size"]),
        ({}, {"reason": "x" * 1001}, ["body", "reason"]),
        ({}, {"reasons": "x"}, ["body", "reasons"]),
    ],
)
async def test_bad_input_is_named(
    platform: RunningPlatform, tenant: Tenant, params: dict[str, Any], body: dict[str, str] | None, loc: list[str]
) -> None:
    if body is None:
        answer = await tenant.admin.client.get(BASE, params=params)
    else:
        answer = await tenant.admin.client.post(f"{BASE}/{add(platform, tenant)}/deny", json=body)
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [loc]


# held requests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verb", "result"), [("approve", "approved"), ("deny", "denied")])
async def test_a_held_request_continues_at_once_after_the_decision(
    platform: RunningPlatform, tenant: Tenant, verb: str, result: str
) -> None:
    async with port(platform) as approvals:
        x = await new_request(platform, tenant)
        waiting = asyncio.create_task(approvals.decision(x, ASK))
        approval_id = await wait_for_approval(platform, x)
        body = (await tenant.admin.client.get(f"{BASE}/{approval_id}")).json()
        assert (body["user_id"], body["model"]) == (str(tenant.user.id), "sandbox/echo")
        assert (body["rule_name"], body["entity_types"]) == ("Cards", ["credit_card"])
        assert "4111 1111" not in str(body)
        # The first poll is over, so only a notification can deliver the decision in this time.
        await asyncio.sleep(0.1)
        assert (await tenant.admin.client.post(f"{BASE}/{approval_id}/{verb}", json={})).status_code == 200
        async with asyncio.timeout(live.POLL_INTERVAL_SECONDS * 0.7):
            assert await waiting == result


async def test_a_decision_is_found_without_a_notification(platform: RunningPlatform, tenant: Tenant) -> None:
    async with port(platform) as approvals:
        x = await new_request(platform, tenant)
        waiting = asyncio.create_task(approvals.decision(x, ASK))
        approval_id = await wait_for_approval(platform, x)
        platform.sql("UPDATE approvals SET status = 'approved' WHERE id = %s", [approval_id])
        async with asyncio.timeout(60):
            assert await waiting == "approved"


async def test_each_of_many_held_requests_gets_its_own_decision(platform: RunningPlatform, tenant: Tenant) -> None:
    async with port(platform) as approvals:
        requests = [await new_request(platform, tenant) for _ in range(20)]
        waiting = [asyncio.create_task(approvals.decision(x, ASK)) for x in requests]
        for number, x in enumerate(requests):
            approval_id = await wait_for_approval(platform, x)
            await tenant.admin.client.post(f"{BASE}/{approval_id}/{'deny' if number % 3 else 'approve'}", json={})
        async with asyncio.timeout(60):
            assert await asyncio.gather(*waiting) == ["denied" if number % 3 else "approved" for number in range(20)]


async def test_a_held_request_is_refused_after_the_timeout(platform: RunningPlatform, tenant: Tenant) -> None:
    async with port(platform, seconds=0.2) as approvals:
        x = await new_request(platform, tenant)
        assert await approvals.decision(x, ASK) == "expired"
        assert approval_row(platform, x)[1] == "expired"  # type: ignore[index]


async def test_a_decision_shortly_before_the_timeout_is_used(platform: RunningPlatform, tenant: Tenant) -> None:
    """The decision is committed before the timeout, but read only at the timeout."""
    async with port(platform, seconds=0.5) as approvals:
        x = await new_request(platform, tenant)
        waiting = asyncio.create_task(approvals.decision(x, ASK))
        approval_id = await wait_for_approval(platform, x)
        await asyncio.sleep(0.1)
        platform.sql("UPDATE approvals SET status = 'approved' WHERE id = %s", [approval_id])
        assert await waiting == "approved"


async def test_a_client_that_disconnects_cancels_its_approval(platform: RunningPlatform, tenant: Tenant) -> None:
    async with port(platform) as approvals:
        x = await new_request(platform, tenant)
        waiting = asyncio.create_task(approvals.decision(x, ASK))
        approval_id = await wait_for_approval(platform, x)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await wait_until_ended(platform, x) == "cancelled"
        answer = await tenant.admin.client.post(f"{BASE}/{approval_id}/approve", json={})
        assert (answer.status_code, answer.json()["status"]) == (409, "cancelled")


async def test_a_worker_that_has_drained_answers_its_held_requests(platform: RunningPlatform, tenant: Tenant) -> None:
    async with port(platform) as approvals:
        x, approved = await new_request(platform, tenant), await new_request(platform, tenant)
        waiting = [asyncio.create_task(approvals.decision(request, ASK)) for request in (x, approved)]
        await wait_for_approval(platform, x)
        approval_id = await wait_for_approval(platform, approved)
        # Decided, but not read yet.
        platform.sql("UPDATE approvals SET status = 'approved' WHERE id = %s", [approval_id])
        approvals.release()
        with pytest.raises(WorkerStopping) as stopping:
            await waiting[0]
        assert (stopping.value.status, stopping.value.headers) == (503, {"Retry-After": "1"})
        assert approval_row(platform, x)[1] == "cancelled"  # type: ignore[index]
        assert await waiting[1] == "approved"
        with pytest.raises(WorkerStopping):
            await approvals.decision(await new_request(platform, tenant), ASK)


async def test_a_worker_that_ends_cancels_its_held_requests(platform: RunningPlatform, tenant: Tenant) -> None:
    x = await new_request(platform, tenant)
    node = Node(platform.host.database)
    await node.join(0)
    database = Database(platform.installed.url, pool_size=1)
    approvals = LiveApprovals(database, node, platform.host.replica, seconds=20)
    waiting = asyncio.create_task(approvals.decision(x, ASK))
    await wait_for_approval(platform, x)
    await approvals.stop()
    assert approval_row(platform, x)[1] == "cancelled"  # type: ignore[index]
    waiting.cancel()
    await node.leave()
    await database.close()


async def test_approvals_of_a_dead_worker_are_cancelled_and_those_of_a_live_one_are_not(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    pending, dead, overdue = add(platform, tenant), add(platform, tenant, node=new_id()), add(platform, tenant)
    platform.sql("UPDATE approvals SET expires_at = now() - interval '1 minute' WHERE id = %s", [overdue])
    async with port(platform) as approvals:
        await approvals.start()
        rows = platform.sql("SELECT id::text, status FROM approvals WHERE tenant_id = %s", [tenant.id])
    assert dict(rows) == {pending: "pending", dead: "cancelled", overdue: "expired"}


async def test_a_request_is_refused_if_no_approval_can_be_stored(platform: RunningPlatform, tenant: Tenant) -> None:
    unreachable_url = "postgresql://postgres:@127.0.0.1:1/postgres"
    async with port(platform, url=unreachable_url) as approvals:
        x = await new_request(platform, tenant)
        with pytest.raises(ApprovalUnavailable):
            await approvals.decision(x, ASK)


@pytest.mark.parametrize("failure", ["refuse", "swallow"])
async def test_a_request_is_refused_if_its_decision_cannot_be_read(
    platform: RunningPlatform, tenant: Tenant, failure: str
) -> None:
    with relay(platform.host.settings.gatehouse_home / "postgres" / ".s.PGSQL.5432") as database_relay:
        async with port(platform, seconds=0.6, url=database_relay.url) as approvals:
            x = await new_request(platform, tenant)
            waiting = asyncio.create_task(approvals.decision(x, ASK))
            approval_id = await wait_for_approval(platform, x)
            getattr(database_relay, failure)()
            answer = await tenant.admin.client.post(f"{BASE}/{approval_id}/approve", json={})
            assert answer.status_code == 200
            async with asyncio.timeout(60):
                try:
                    result = await waiting
                except ApprovalUnavailable:
                    # Other processes see the row shortly before the worker that inserted it.
                    result = "expired"
            assert result == "expired"
            database_relay.mend()


async def test_a_decision_is_read_when_the_database_is_available_again(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    with relay(platform.host.settings.gatehouse_home / "postgres" / ".s.PGSQL.5432") as database_relay:
        async with port(platform, url=database_relay.url) as approvals:
            x = await new_request(platform, tenant)
            waiting = asyncio.create_task(approvals.decision(x, ASK))
            approval_id = await wait_for_approval(platform, x)
            await wait_until_polling()
            database_relay.refuse()
            await tenant.admin.client.post(f"{BASE}/{approval_id}/approve", json={})
            await asyncio.sleep(0.5)
            database_relay.mend()
            async with asyncio.timeout(60):
                assert await waiting == "approved"


async def test_a_worker_holds_a_limited_number_of_requests(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_WAITING_PER_TENANT", 2)
    monkeypatch.setattr(live, "MAX_WAITING_REQUESTS", 3)
    async with port(platform) as approvals:
        requests = [await new_request(platform, owner) for owner in (tenant, tenant, other_tenant)]
        waiting = [asyncio.create_task(approvals.decision(x, ASK)) for x in requests[:2]]
        await asyncio.gather(*(wait_for_approval(platform, x) for x in requests[:2]))
        with pytest.raises(TooManyWaitingRequests):
            await approvals.decision(await new_request(platform, tenant), ASK)
        waiting.append(asyncio.create_task(approvals.decision(requests[2], ASK)))
        await wait_for_approval(platform, requests[2])
        with pytest.raises(TooManyWaitingRequests):
            await approvals.decision(await new_request(platform, other_tenant), ASK)
        approval_id = await wait_for_approval(platform, requests[0])
        await tenant.admin.client.post(f"{BASE}/{approval_id}/approve", json={})
        assert await waiting[0] == "approved"
        waiting.append(asyncio.create_task(approvals.decision(x := await new_request(platform, tenant), ASK)))
        await wait_for_approval(platform, x)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
