"""The additional fields of model calls that an organization allows."""

from typing import Any

import httpx2
import pytest
from tests.support.journal import Journal
from tests.support.platform import Person, RunningPlatform, Tenant

BASE = "/api/v1/admin/org/request-fields"
HELLO = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    return tenant


async def put(tenant: Tenant, *names: str) -> httpx2.Response:
    return await tenant.admin.client.put(BASE, json={"allowed": list(names)})


async def chat(person: Person, **more: Any) -> httpx2.Response:
    body = {"model": "sandbox/echo", "messages": HELLO, **more}
    return await person.client.post("/v1/chat/completions", json=body)


async def drained(platform: RunningPlatform) -> None:
    """Wait until all answers so far are recorded."""
    await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()


async def test_no_field_is_allowed_by_default(tenant: Tenant) -> None:
    answer = await tenant.auditor.client.get(BASE)
    shown = answer.json()
    assert (answer.status_code, shown["allowed"], shown["unknown_fields"]) == (200, [], "pass")
    reasons = {refused_item["field"]: refused_item["reason"] for refused_item in shown["refused"]}
    assert reasons["models"] == "names another model"
    assert reasons["service_tier"] == "changes the price"
    assert "tools.*" in reasons
    assert "etag" in answer.headers
    assert shown["sources"] == {"allowed": "default", "unknown_fields": "default"}


async def test_an_allowed_field_is_forwarded_once_the_change_is_answered(
    platform: RunningPlatform, sandbox: Tenant, other_tenant: Tenant
) -> None:
    refused = await chat(sandbox.user, service_tier="priority")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (400, "field_not_allowed", "service_tier")
    answer = await put(sandbox, "tools.mcp", "service_tier", "service_tier")
    assert (answer.status_code, answer.json()["allowed"]) == (200, ["service_tier", "tools.mcp"])
    assert answer.json()["sources"] == {"allowed": "organization", "unknown_fields": "default"}
    assert "service_tier" not in {refused_item["field"] for refused_item in answer.json()["refused"]}
    (event,) = await platform.audit(sandbox, "request_fields.changed")
    assert event["details"] == {"allowed": ["service_tier", "tools.mcp"], "before": {"allowed": []}}
    assert (await chat(sandbox.user, service_tier="priority")).status_code == 200
    assert (await chat(sandbox.user, models=["x"])).status_code == 400
    assert (await other_tenant.admin.client.get(BASE)).json()["allowed"] == []
    await put(sandbox)
    assert (await chat(sandbox.user, service_tier="priority")).status_code == 400


async def test_a_field_that_no_permission_allows_stays_in_the_list_of_refused_ones(tenant: Tenant) -> None:
    answer = await put(tenant, "store", "thread_id")
    refused = {refused_item["field"] for refused_item in answer.json()["refused"]}
    assert "thread_id" in refused
    assert "store" not in refused


async def test_a_refusal_and_unknown_fields_are_in_the_requests_audit_event(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    assert (await chat(sandbox.user, plugins=[{"id": "web"}], vendor_speciality=1)).status_code == 400
    await drained(platform)
    (event,) = await platform.audit(sandbox, "gateway.request")
    assert [(rule["kind"], rule["rule_id"], rule["action"]) for rule in event["details"]["rules"]] == [
        ("request_field", "vendor_speciality", "LOG"),
        ("request_field", "plugins", "BLOCK"),
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "allowed"),
        ({"allowed": "models"}, "allowed"),
        ({"allowed": ["has space"]}, "allowed.0"),
        ({"allowed": ["x" * 65]}, "allowed.0"),
        ({"allowed": ["x"] * 101}, "allowed"),
        ({"allowed": [], "more": 1}, "more"),
    ],
)
async def test_a_malformed_list_is_refused_and_named(tenant: Tenant, body: Any, field: str) -> None:
    answer = await tenant.admin.client.put(BASE, json=body)
    assert answer.status_code in {400, 422}
    assert field in answer.text


async def test_only_administrators_change_the_list(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.client("nobody").get(BASE)).status_code == 401
    assert (await tenant.user.client.get(BASE)).status_code == 403
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.put(BASE, json={"allowed": []})).status_code == 403


async def test_policies_can_be_tested_and_simulated_with_fields(sandbox: Tenant) -> None:
    trial = {"condition": '"models" in request.fields', "context": {"request": {"fields": ["models"]}}}
    result = (await sandbox.admin.client.post("/api/admin/policies/test", json=trial)).json()
    assert (result["matched"], result["error"]) == (True, None)
    policy = {"name": "p", "strategy": "cost_optimized"}
    made = (await sandbox.admin.client.post("/api/admin/cost-routing/policies", json=policy)).json()
    request = {"model": "sandbox/echo", "estimated_input_tokens": 1, "estimated_output_tokens": 1}
    simulation = {"policy_id": made["policy_id"], "request": {**request, "request_fields": ["tools.mcp"]}}
    result = (await sandbox.admin.client.post("/api/admin/cost-routing/simulate", json=simulation)).json()
    assert result["refusal"]["code"] == "field_not_allowed"
