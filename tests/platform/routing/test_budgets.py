"""Budgets: the endpoints, and the effect on requests (docs/budgets.md)."""

import asyncio
import time
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.platform import Person, RunningPlatform, Tenant

BASE = "/api/admin/budgets"
BUDGET: dict[str, Any] = {"scope_type": "tenant", "period": "month", "limit_requests": 2}


async def made(tenant: Tenant, **changed: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json={**BUDGET, **changed})
    assert answer.status_code == 201, answer.text
    budget: dict[str, Any] = answer.json()
    return budget


async def chat(person: Person, **more: Any) -> httpx2.Response:
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hello"}], **more}
    return await person.client.post("/v1/chat/completions", json=body)


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "status-400")
    return tenant


async def test_a_budget_has_these_fields(tenant: Tenant) -> None:
    budget = await made(tenant, limit_usd=12.5)
    current = budget["current"]
    assert budget == {
        "id": budget["id"], "tenant_id": str(tenant.id), "scope_type": "tenant", "scope_id": str(tenant.id),
        "period": "month", "limit_usd": 12.5, "limit_requests": 2, "limit_tokens": None, "action": "block",
        "current": {**current, "spent_usd": 0, "spent_requests": 0, "spent_tokens": 0},
        "created_at": budget["created_at"], "updated_at": budget["updated_at"],
    }  # fmt: skip
    assert current["period_start"][8:19] == "01T00:00:00"
    path = f"{BASE}/{budget['id']}"
    assert (await tenant.auditor.client.get(path)).json() == budget
    other = await made(tenant, scope_type="user", scope_id=str(tenant.user.id), period="day")
    page = (await tenant.auditor.client.get(BASE)).json()
    assert ([item["id"] for item in page["items"]], page["total"]) == ([other["id"], budget["id"]], 2)
    page = (await tenant.auditor.client.get(BASE, params={"scope_type": "user"})).json()
    assert [item["id"] for item in page["items"]] == [other["id"]]


async def test_a_call_over_the_budget_is_429_with_the_start_of_the_next_period(sandbox: Tenant) -> None:
    await made(sandbox)
    answers = [await chat(sandbox.user) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[0].headers["X-Budget-Limit-Requests"] == "2"
    refused = answers[2]
    error = refused.json()["error"]
    assert (error["type"], error["code"], error["tier"]) == ("rate_limit_error", "quota_exceeded", "tenant:month")
    assert error["retry_after"] == int(refused.headers["Retry-After"])
    assert int(refused.headers["X-RateLimit-Reset"]) == int(answers[0].headers["X-Budget-Reset-Requests"])


async def test_each_scope_binds_its_own_callers(platform: RunningPlatform, sandbox: Tenant) -> None:
    group = (await sandbox.admin.client.post("/api/admin/groups", json={"name": "g"})).json()
    await sandbox.admin.client.post(f"/api/admin/groups/{group['id']}/members", json={"user_id": str(sandbox.user.id)})
    for scope_type, scope_id in (("group", group["id"]), ("user", str(sandbox.user.id))):
        platform.sql("DELETE FROM usage_records WHERE tenant_id = %s", [sandbox.id])
        budget = await made(sandbox, scope_type=scope_type, scope_id=scope_id, limit_requests=1)
        assert [(await chat(sandbox.user)).status_code for _ in range(2)] == [200, 429]
        assert (await chat(sandbox.admin)).status_code == 200
        await sandbox.admin.client.delete(f"{BASE}/{budget['id']}")
        assert (await chat(sandbox.user)).status_code == 200


async def test_a_raised_limit_applies_at_once(sandbox: Tenant) -> None:
    budget = await made(sandbox, limit_requests=1)
    assert [(await chat(sandbox.user)).status_code for _ in range(2)] == [200, 429]
    await sandbox.admin.client.put(f"{BASE}/{budget['id']}", json={"limit_requests": 2})
    assert [(await chat(sandbox.user)).status_code for _ in range(2)] == [200, 429]
    await sandbox.admin.client.put(f"{BASE}/{budget['id']}", json={"action": "warn"})
    assert (await chat(sandbox.user)).status_code == 200


async def test_a_stream_and_a_failed_call_give_back_what_they_did_not_use(sandbox: Tenant) -> None:
    await made(sandbox, limit_requests=2)
    for _ in range(2):
        failed = await chat(sandbox.user, model="sandbox/status-400")
        assert failed.status_code == 400, failed.text
    assert (await chat(sandbox.user, stream=True)).status_code == 200
    await asyncio.sleep(0.1)
    assert [(await chat(sandbox.user)).status_code for _ in range(2)] == [200, 429]


async def test_the_plans_limit_is_a_budget_of_requests(platform: RunningPlatform, sandbox: Tenant) -> None:
    platform.sql("UPDATE tenants SET monthly_request_limit = 1 WHERE id = %s", [sandbox.id])
    await platform.host.policies.changed({str(sandbox.id)})
    answers = [await chat(sandbox.user) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1].json()["error"]["tier"] == "plan"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"scope_type": "planet"}, "scope_type"),
        ({"scope_type": "group"}, "scope_id"),
        ({"scope_type": "user", "scope_id": str(uuid4())}, "scope_id"),
        ({"scope_id": str(uuid4())}, "scope_id"),
        ({"period": "year"}, "period"),
        ({"limit_requests": 0}, "limit_requests"),
        ({"limit_requests": 1.5}, "limit_requests"),
        ({"limit_usd": -1}, "limit_usd"),
        ({"limit_usd": "NaN"}, "limit_usd"),
        ({"limit_requests": None}, "limit_usd"),
        ({"action": "explode"}, "action"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_bad_input_is_422_and_names_the_field(tenant: Tenant, changed: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.post(BASE, json={**BUDGET, **changed})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"scope_type": "user"}, "scope_type"),
        ({"period": "day"}, "period"),
        ({"limit_requests": None}, "limit_requests"),
        ({"action": None}, "action"),
    ],
)
async def test_a_change_of_a_fixed_field_is_422(tenant: Tenant, changed: dict[str, Any], field: str) -> None:
    budget = await made(tenant)
    answer = await tenant.admin.client.put(f"{BASE}/{budget['id']}", json=changed)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])
    assert (await tenant.admin.client.get(f"{BASE}/{budget['id']}")).json() == budget


async def test_a_scope_and_period_have_at_most_one_budget(tenant: Tenant) -> None:
    await made(tenant)
    answer = await tenant.admin.client.post(BASE, json=BUDGET)
    assert (answer.status_code, "Change that budget" in answer.json()["detail"]) == (409, True)


async def test_another_organizations_budget_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await made(other_tenant)
    for method, body in (("GET", None), ("PUT", {"limit_requests": 9}), ("DELETE", None)):
        answer = await tenant.admin.client.request(method, f"{BASE}/{theirs['id']}", json=body)
        assert (answer.status_code, answer.json()) == (404, {"detail": "Budget not found"})
    answer = await tenant.admin.client.post(
        BASE, json={**BUDGET, "scope_type": "user", "scope_id": str(other_tenant.user.id)}
    )
    assert answer.status_code == 422


async def test_only_permitted_roles_have_access(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}/{(await made(tenant))['id']}"
    reader = await platform.new_m2m(tenant.id, "admin:read")
    for client, reads, writes in (
        (platform.anonymous, 401, 401), (tenant.user.client, 403, 403), (tenant.auditor.client, 200, 403),
        (reader, 200, 403),
    ):  # fmt: skip
        for read in (BASE, path):
            assert (await client.get(read)).status_code == reads
        for method, to, body in (("POST", BASE, BUDGET), ("PUT", path, {}), ("DELETE", path, None)):
            assert (await client.request(method, to, json=body)).status_code == writes


async def test_every_change_is_in_the_audit_log(platform: RunningPlatform, tenant: Tenant) -> None:
    budget = await made(tenant)
    await tenant.admin.client.put(f"{BASE}/{budget['id']}", json={"limit_usd": 7})
    await tenant.admin.client.delete(f"{BASE}/{budget['id']}")
    details = {}
    for action in ("created", "updated", "deleted"):
        (event,) = await platform.audit(tenant, f"budget.{action}")
        assert event["resource_id"] == budget["id"]
        details[action] = event["details"]
    assert details["created"]["budget"]["limit_requests"] == 2
    assert details["updated"]["changed"] == {"limit_usd": "7"}


@pytest.mark.parametrize("scope_type", ["group", "user", "api_key", "oauth_client"])
async def test_a_budget_is_deleted_with_its_scope(platform: RunningPlatform, tenant: Tenant, scope_type: str) -> None:
    admin = tenant.admin.client
    if scope_type == "group":
        path = "/api/admin/groups"
        scope_id = (await admin.post(path, json={"name": "g"})).json()["id"]
    elif scope_type == "user":
        path = "/api/admin/users"
        scope_id = str(tenant.user.id)
    elif scope_type == "api_key":
        path = "/api/auth/api-keys"
        scope_id = (await admin.post(path, json={"description": "k"})).json()["id"]
    else:
        path = "/api/admin/oauth-clients"
        scope_id = (await admin.post(path, json={"name": "c", "scopes": ["chat:write"]})).json()["client_id"]
    budget = await made(tenant, scope_type=scope_type, scope_id=scope_id)
    other = await made(tenant)
    gone = await admin.delete(f"{path}/{scope_id}")
    assert gone.status_code in (200, 204), gone.text
    assert (await admin.get(f"{BASE}/{budget['id']}")).status_code == 404
    assert (await admin.get(f"{BASE}/{other['id']}")).status_code == 200


USED = """
    INSERT INTO usage_records (tenant_id, id, timestamp, request_id, user_id, group_id, api_key_id, client_id, status,
        stream, input_tokens, output_tokens, cached_tokens, cost_usd)
    VALUES (%(tenant)s, %(id)s, now() - %(ago)s * interval '1 second', 'r', %(user)s, %(group)s, %(key)s, %(client)s,
        %(status)s, false, %(input)s, 5, 3, 0.25)
"""


def used(platform: RunningPlatform, tenant: Tenant, **values: Any) -> None:
    """Insert the record of one request."""
    known = {"user": None, "group": None, "key": None, "client": None, "status": "success", "input": 2, "ago": 0}
    platform.sql(USED, {"tenant": tenant.id, "id": uuid4(), **known, **values})


async def test_a_new_budget_starts_with_the_organizations_usage(platform: RunningPlatform, sandbox: Tenant) -> None:
    for _ in range(3):
        used(platform, sandbox)
    used(platform, sandbox, status="cancelled")
    # Neither is treated as usage: one was refused, and one is of last year.
    used(platform, sandbox, status="refused", input=None)
    used(platform, sandbox, ago=400 * 86_400)
    budget = await made(sandbox, limit_requests=5)
    current = budget["current"]
    assert (current["spent_requests"], current["spent_tokens"], current["spent_usd"]) == (4, 40, 1.0)
    assert [(await chat(sandbox.user)).status_code for _ in range(2)] == [200, 429]


async def test_a_new_budget_starts_with_its_scopes_usage(platform: RunningPlatform, sandbox: Tenant) -> None:
    group = (await sandbox.admin.client.post("/api/admin/groups", json={"name": "g"})).json()
    await sandbox.admin.client.post(f"/api/admin/groups/{group['id']}/members", json={"user_id": str(sandbox.user.id)})
    await platform.new_key(sandbox.user)
    (key,) = (await sandbox.user.client.get("/api/auth/api-keys")).json()
    client = (
        await sandbox.admin.client.post("/api/admin/oauth-clients", json={"name": "c", "scopes": ["chat:write"]})
    ).json()
    used(platform, sandbox, user=sandbox.user.id, group=group["id"])
    used(platform, sandbox, user=sandbox.user.id, key=key["id"])
    used(platform, sandbox, user=sandbox.admin.id)
    used(platform, sandbox, client=client["client_id"])
    scopes = {"user": str(sandbox.user.id), "group": group["id"], "api_key": key["id"], "tenant": None}
    current_by_scope = {
        scope_type: (await made(sandbox, scope_type=scope_type, scope_id=scope_id, period="day"))["current"]
        for scope_type, scope_id in scopes.items()
    }
    assert {name: current["spent_requests"] for name, current in current_by_scope.items()} == {
        "user": 2, "group": 2, "api_key": 1, "tenant": 4,
    }  # fmt: skip
    client_budget = await made(sandbox, scope_type="oauth_client", scope_id=client["client_id"])
    assert client_budget["current"]["spent_requests"] == 1


async def test_a_budget_never_counts_another_organization(
    platform: RunningPlatform, sandbox: Tenant, other_tenant: Tenant
) -> None:
    used(platform, other_tenant)
    assert (await made(sandbox))["current"]["spent_requests"] == 0


async def test_a_plans_new_limit_counts_the_month_and_announces_one_threshold(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    path = f"/v1/platform/tenants/{sandbox.id}/entitlements"
    for _ in range(7):
        used(platform, sandbox)
    assert (await portal.patch(path, json={"monthly_request_limit": 8})).status_code == 200
    assert (await chat(sandbox.user)).status_code == 200
    refused = await chat(sandbox.user)
    assert (refused.status_code, refused.json()["error"]["tier"]) == (429, "plan")
    assert steps(platform, sandbox) == [0.8]
    assert (await portal.patch(path, json={"monthly_request_limit": 100})).status_code == 200
    assert (await chat(sandbox.user)).status_code == 200
    assert (await portal.patch(path, json={"monthly_request_limit": 2})).status_code == 200
    assert (await chat(sandbox.user)).status_code == 429
    await announced(platform, sandbox, [0.8, 1.0])


async def announced(platform: RunningPlatform, tenant: Tenant, expected: list[float]) -> None:
    deadline = time.monotonic() + 60
    while steps(platform, tenant) != expected:
        assert time.monotonic() < deadline, steps(platform, tenant)
        await asyncio.sleep(0.05)


def steps(platform: RunningPlatform, tenant: Tenant) -> list[float]:
    rows = platform.sql(
        "SELECT payload FROM outbox WHERE tenant_id = %s AND event_type = 'usage_threshold' ORDER BY created_at, id",
        [tenant.id],
    )
    return [payload["threshold"] for (payload,) in rows]


async def test_a_spent_budget_refuses_model_calls_only(sandbox: Tenant) -> None:
    await made(sandbox, limit_requests=1)
    assert [(await chat(sandbox.user)).status_code for _ in range(2)] == [200, 429]
    assert (await sandbox.user.client.get("/v1/models")).status_code == 200
    assert (await sandbox.user.client.get("/v1/models/sandbox/echo")).status_code == 200
    assert (await sandbox.user.client.post("/v1/scan", json={"text": "hello"})).status_code == 200
    assert (await chat(sandbox.user)).status_code == 429


@pytest.mark.parametrize("scope_type", ["group", "tenant"])
async def test_quota_exceeded_names_the_user_who_reached_it(
    platform: RunningPlatform, sandbox: Tenant, scope_type: str
) -> None:
    group = (await sandbox.admin.client.post("/api/admin/groups", json={"name": "g"})).json()
    await sandbox.admin.client.post(f"/api/admin/groups/{group['id']}/members", json={"user_id": str(sandbox.user.id)})
    await made(sandbox, scope_type=scope_type, scope_id=group["id"] if scope_type == "group" else None)
    assert [(await chat(sandbox.user)).status_code for _ in range(3)] == [200, 200, 429]
    query = "SELECT payload FROM outbox WHERE tenant_id = %s AND event_type = 'quota_exceeded'"
    async with asyncio.timeout(60):
        while not (rows := platform.sql(query, [sandbox.id])):
            await asyncio.sleep(0.05)
    ((payload,),) = rows
    assert payload["user_id"] == str(sandbox.user.id)
    assert payload["group_id"] == (group["id"] if scope_type == "group" else None)
