"""Policy rules (docs/policies.md)."""

import asyncio
from typing import Any

import httpx2
import pytest
from tests.support.platform import Person, RunningPlatform, Tenant

BASE = "/api/admin/policies"
POLICY: dict[str, Any] = {"name": "No echo", "condition": 'model == "sandbox/echo"', "action": "BLOCK"}


async def create_policy(tenant: Tenant, **changed: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json={**POLICY, **changed})
    assert answer.status_code == 201, answer.text
    policy: dict[str, Any] = answer.json()
    return policy


async def chat(person: Person, model: str = "sandbox/echo", **more: Any) -> httpx2.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], **more}
    return await person.client.post("/v1/chat/completions", json=body)


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "slow-1ms")
    return tenant


async def test_a_rule_has_the_documented_fields_and_defaults(tenant: Tenant) -> None:
    policy = await create_policy(tenant)
    assert policy == {
        **POLICY, "id": policy["id"], "tenant_id": str(tenant.id), "description": None, "priority": 100,
        "enabled": True, "route_to": None, "terminal": True, "message": None, "created_at": policy["created_at"],
        "updated_at": policy["updated_at"],
    }  # fmt: skip
    assert (await tenant.auditor.client.get(f"{BASE}/{policy['id']}")).json() == policy
    assert (await create_policy(tenant, name="a log", action="LOG"))["terminal"] is False
    assert (await create_policy(tenant, name="the last log", action="LOG", terminal=True))["terminal"] is True


async def test_the_list_is_in_the_order_of_evaluation(tenant: Tenant) -> None:
    a, b, c = [
        await create_policy(tenant, name=name, priority=priority) for name, priority in (("a", 5), ("b", 1), ("c", 5))
    ]
    listed = (await tenant.auditor.client.get(BASE)).json()
    assert [policy["id"] for policy in listed] == [b["id"], a["id"], c["id"]]


async def test_a_rule_takes_effect_with_the_response_and_ends_when_it_is_removed(sandbox: Tenant) -> None:
    policy = await create_policy(sandbox, message="Use another.")
    answer = await chat(sandbox.user)
    assert answer.status_code == 403
    assert answer.json()["error"] == {
        "message": "Use another.", "type": "policy_violation", "code": "policy_violation", "rule_id": policy["id"],
    }  # fmt: skip
    assert (await chat(sandbox.user, "sandbox/slow-1ms")).status_code == 200
    path = f"{BASE}/{policy['id']}"
    await sandbox.admin.client.put(path, json={"condition": 'user.role == "admin"'})
    assert [(await chat(who)).status_code for who in (sandbox.user, sandbox.admin)] == [200, 403]
    await sandbox.admin.client.put(path, json={"enabled": False})
    assert (await chat(sandbox.admin)).status_code == 200
    await sandbox.admin.client.put(path, json={"enabled": True})
    assert (await sandbox.admin.client.delete(path)).status_code == 204
    assert (await chat(sandbox.admin)).status_code == 200


async def test_a_rule_reroutes_a_call(sandbox: Tenant) -> None:
    await create_policy(sandbox, action="ROUTE", route_to="sandbox/slow-1ms")
    assert (await chat(sandbox.user)).headers["X-Gateway-Model"] == "slow-1ms"


async def test_rules_use_the_risk_tier_of_registered_and_unregistered_models(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    await create_policy(sandbox, condition='model_risk_tier == "tier_1" || validation_status == "deprecated"')
    assert (await chat(sandbox.user)).status_code == 200
    await sandbox.admin.client.put("/api/admin/config/unregistered_model_tier", json={"value": "tier_1"})
    assert (await chat(sandbox.user)).status_code == 403
    registered = {"provider": "sandbox", "model_id": "echo", "display_name": "Echo", "risk_tier": "tier_3"}
    answer = await sandbox.admin.client.post("/api/admin/models", json=registered)
    assert answer.status_code == 201, answer.text
    assert (await chat(sandbox.user)).status_code == 200


async def test_with_governance_disabled_no_rule_is_evaluated_and_the_change_is_audited_once(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    await create_policy(sandbox)
    for value, status in (("false", 200), ("false", 200), ("true", 403)):
        await sandbox.admin.client.put("/api/admin/config/governance_enabled", json={"value": value})
        assert (await chat(sandbox.user)).status_code == status
    assert len(await platform.audit(sandbox, "governance.disabled")) == 1
    assert len(await platform.audit(sandbox, "governance.enabled")) == 1


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"condition": "model =="}, "condition"),
        ({"condition": "colour == 1"}, "condition"),
        ({"condition": "tokens"}, "condition"),
        ({"condition": ""}, "condition"),
        ({"condition": "true" + " " * 2_000 + "|| false"}, "condition"),
        ({"condition": 'model.matches("a")'}, "condition"),
        ({"action": "block"}, "action"),
        ({"action": "ROUTE"}, "route_to"),
        ({"action": "ROUTE", "route_to": "nowhere/x"}, "route_to"),
        ({"route_to": "sandbox/slow-1ms"}, "route_to"),
        ({"name": ""}, "name"),
        ({"priority": 1.5}, "priority"),
        ({"enabled": "yes"}, "enabled"),
        ({"terminal": 1}, "terminal"),
        ({"message": ""}, "message"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_bad_input_is_400_and_names_the_field(sandbox: Tenant, changed: dict[str, Any], field: str) -> None:
    answer = await sandbox.admin.client.post(BASE, json={**POLICY, **changed})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", field])
    policy = await create_policy(sandbox)
    assert (await sandbox.admin.client.put(f"{BASE}/{policy['id']}", json=changed)).status_code == 400
    assert (await sandbox.admin.client.get(BASE)).json() == [policy]


async def test_an_error_in_a_condition_has_its_reason_and_position(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(BASE, json={**POLICY, "condition": 'model == "a" &&'})
    assert answer.json()["detail"][0]["msg"].startswith("at 1:16: Syntax error")


async def test_a_changed_action_removes_the_target(sandbox: Tenant) -> None:
    policy = await create_policy(sandbox, action="ROUTE", route_to="sandbox/slow-1ms")
    changed = (await sandbox.admin.client.put(f"{BASE}/{policy['id']}", json={"action": "BLOCK"})).json()
    assert (changed["action"], changed["route_to"]) == ("BLOCK", None)


async def test_a_name_is_unique(tenant: Tenant) -> None:
    await create_policy(tenant)
    other = await create_policy(tenant, name="other")
    answer = await tenant.admin.client.post(BASE, json=POLICY)
    assert (answer.status_code, answer.json()["detail"]) == (409, "The organization has a policy rule of this name.")
    assert (await tenant.admin.client.put(f"{BASE}/{other['id']}", json={"name": "No echo"})).status_code == 409


async def test_another_organizations_rule_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await create_policy(other_tenant)
    for method, body in (("GET", None), ("PUT", {"name": "mine"}), ("DELETE", None)):
        answer = await tenant.admin.client.request(method, f"{BASE}/{theirs['id']}", json=body)
        assert (answer.status_code, answer.json()) == (404, {"detail": "Policy not found"})
    await create_policy(tenant)


async def test_only_permitted_roles_have_access(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}/{(await create_policy(tenant))['id']}"
    reader = await platform.new_m2m(tenant.id, "admin:read")
    for client, reads, writes in (
        (platform.anonymous, 401, 401), (tenant.user.client, 403, 403), (tenant.auditor.client, 200, 403),
        (reader, 200, 403),
    ):  # fmt: skip
        assert (await client.get(BASE)).status_code == reads
        assert (await client.get(path)).status_code == reads
        for method, target, body in (("POST", BASE, POLICY), ("PUT", path, {}), ("DELETE", path, None),
                                 ("POST", f"{BASE}/test", {})):  # fmt: skip
            assert (await client.request(method, target, json=body)).status_code == writes


async def test_every_change_is_in_the_audit_log(platform: RunningPlatform, tenant: Tenant) -> None:
    policy = await create_policy(tenant)
    await tenant.admin.client.put(f"{BASE}/{policy['id']}", json={"priority": 7})
    await tenant.admin.client.delete(f"{BASE}/{policy['id']}")
    details = {}
    for action in ("created", "updated", "deleted"):
        (event,) = await platform.audit(tenant, f"policy.{action}")
        assert (event["resource_id"], event["actor_id"]) == (policy["id"], str(tenant.admin.id))
        details[action] = event["details"]
    assert details["created"]["rule"]["condition"] == POLICY["condition"]
    assert details["updated"] == {"name": "No echo", "changed": {"priority": 7}}
    assert details["deleted"] == {"name": "No echo"}


async def run_trial(tenant: Tenant, **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/test", json=body)
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


async def test_a_condition_can_be_tested_without_a_rule(tenant: Tenant) -> None:
    context = {
        "model": "openai/gpt-4o", "dlp": {"entities": ["ssn"], "counts": {"ssn": 2}}, "tokens": 9, "cost_usd": 0.5,
        "ip": "10.1.2.3", "groups": ["g"], "user": {"role": "client"}, "time": "2026-07-15T23:00:00Z",
    }  # fmt: skip
    condition = (
        'provider == "openai" && model == "openai/gpt-4o" && "ssn" in dlp.entities && dlp.counts.ssn == 2'
        ' && tokens == 9 && cost_usd == 0.5 && ip.in_range("10.0.0.0/8") && "g" in groups && user.role == "client"'
        ' && time.getHours() == 23 && model_risk_tier == "tier_4" && validation_status == "unregistered"'
    )
    trial = await run_trial(tenant, condition=condition, context=context)
    assert (trial["matched"], trial["error"], trial["rules"]) == (True, None, [])
    trial = await run_trial(
        tenant, condition=f'user.id == "{tenant.admin.id}" && cost_usd == null && size(groups) == 0'
    )
    assert trial["matched"] is True
    trial = await run_trial(tenant, condition='dlp.counts["iban"] > 1')
    assert (trial["matched"], "iban" in trial["error"]) == (False, True)
    answer = await tenant.admin.client.post(f"{BASE}/test", json={"condition": "colour == 1"})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "condition"])
    answer = await tenant.admin.client.post(f"{BASE}/test", json={"context": {"colour": 1}})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "context", "colour"])


async def test_the_current_rules_can_be_tested(sandbox: Tenant) -> None:
    log = await create_policy(sandbox, name="log", action="LOG", condition="true", priority=1)
    await create_policy(sandbox, name="broken", action="ALLOW", condition='dlp.counts["iban"] > 1', priority=2)
    block = await create_policy(sandbox, name="block", priority=3)
    await create_policy(sandbox, name="never", priority=4, condition="true")
    trial = await run_trial(sandbox, context={"model": "sandbox/echo"})
    assert (trial["action"], trial["rule_id"], trial["rule_name"], trial["matched"]) == (
        "BLOCK",
        block["id"],
        "block",
        True,
    )
    assert [(rule["name"], rule["result"]) for rule in trial["rules"]] == [
        ("log", "matched"), ("broken", "failed"), ("block", "matched"),
    ]  # fmt: skip
    assert "iban" in trial["rules"][1]["reason"]
    assert trial["rules"][0]["id"] == log["id"]


async def test_a_request_waits_for_an_approval(sandbox: Tenant) -> None:
    admin = sandbox.admin.client
    await admin.patch("/api/v1/admin/org/feature-flags/human_in_loop", json={"enabled": True})
    policy = await create_policy(sandbox, action="REQUIRE_APPROVAL")
    for decision, status in (("approve", 200), ("deny", 403)):
        waiting = asyncio.create_task(chat(sandbox.user))
        async with asyncio.timeout(60):
            while not (pending := (await admin.get("/api/admin/approvals?status=pending")).json()["items"]):
                await asyncio.sleep(0.02)
        assert (pending[0]["rule_id"], pending[0]["rule_name"], pending[0]["entity_types"]) == (
            policy["id"],
            "No echo",
            [],
        )
        assert (await admin.post(f"/api/admin/approvals/{pending[0]['id']}/{decision}")).status_code == 200
        assert (await waiting).status_code == status
