"""Cost routing: the endpoints, and the effect on requests (docs/cost-routing.md)."""

import asyncio
from decimal import Decimal
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest
from psycopg.types.json import Jsonb
from tests.support.journal import Journal, outcome
from tests.support.platform import Person, RunningPlatform, Tenant

from gatehouse.platform.routing.cost_routing.service import MAX_POLICIES

BASE = "/api/admin/cost-routing"
POLICIES = f"{BASE}/policies"
POLICY: dict[str, Any] = {"name": "cheap", "strategy": "cost_optimized"}
SIMULATED = {"model": None, "estimated_input_tokens": 1_000, "estimated_output_tokens": 1_000}


async def made(tenant: Tenant, **changed: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(POLICIES, json={**POLICY, **changed})
    assert answer.status_code == 201, answer.text
    policy: dict[str, Any] = answer.json()
    return policy


async def chat(person: Person, model: str = "auto", **more: Any) -> httpx2.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], **more}
    return await person.client.post("/v1/chat/completions", json=body)


async def simulated(tenant: Tenant, policy: dict[str, Any], **changed: Any) -> dict[str, Any]:
    body = {"policy_id": policy["policy_id"], "request": {**SIMULATED, **changed}}
    answer = await tenant.admin.client.post(f"{BASE}/simulate", json=body)
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


def chain(*models: str) -> list[dict[str, Any]]:
    return [{"provider": "sandbox", "model_id": model, "priority": at} for at, model in enumerate(models)]


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    """An organization with models of the sandbox. `echo` costs 3 USD per million tokens of input and of output,
    `stream-1` 1 USD and `stream-2` 2 USD. `embed` only supports embeddings."""
    models = ("echo", "stream-1", "stream-2", "status-503", "status-400", "embed")
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *models, max_retries=0)
    for model, price in {"echo": "0.000003", "stream-1": "0.000001", "stream-2": "0.000002"}.items():
        platform.sql(
            "UPDATE model_configs SET cost_per_input_token = %s, cost_per_output_token = %s"
            " WHERE tenant_id = %s AND model_id = %s",
            [Decimal(price), Decimal(price), tenant.id, model],
        )
    platform.sql(
        "UPDATE model_configs SET cost_per_input_token = NULL WHERE tenant_id = %s AND model_id LIKE 'status-%%'",
        [tenant.id],
    )
    embeds = "UPDATE model_configs SET capabilities = %s WHERE tenant_id = %s AND model_id = 'embed'"
    platform.sql(embeds, [Jsonb({"embeddings": True}), tenant.id])
    await platform.host.policies.changed({str(tenant.id)})
    return tenant


async def test_a_policy_has_these_fields(tenant: Tenant) -> None:
    policy = await made(tenant)
    assert policy == {
        "policy_id": policy["policy_id"], "name": "cheap", "description": None, "enabled": True,
        "strategy": "cost_optimized", "group_ids": [],
        "model_filters": {
            "min_context_window": None, "required_capabilities": [], "excluded_models": [], "included_providers": [],
            "max_cost_per_1k_input_tokens_usd": None,
        },
        "fallback_chain": [], "cost_cap": None, "latency_budget_ms": None, "cache_ttl_seconds": None,
        "created_at": policy["created_at"], "updated_at": policy["updated_at"],
    }  # fmt: skip
    assert (await tenant.auditor.client.get(f"{POLICIES}/{policy['policy_id']}")).json() == policy
    assert (await tenant.auditor.client.get(POLICIES)).json() == {"policies": [policy], "total": 1}


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ({"enabled": "true"}, 1),
        ({"enabled": "false"}, 1),
        ({"strategy": "round_robin"}, 1),
        ({"strategy": "balanced"}, 0),
    ],
)
async def test_the_list_is_filtered(tenant: Tenant, query: dict[str, str], total: int) -> None:
    await made(tenant)
    await made(tenant, strategy="round_robin", enabled=False)
    assert (await tenant.admin.client.get(POLICIES, params=query)).json()["total"] == total


async def test_the_list_is_filtered_by_group(tenant: Tenant) -> None:
    await made(tenant)
    group = await new_group(tenant)
    theirs = await made(tenant, group_ids=[group])
    assert (await tenant.admin.client.get(POLICIES, params={"group_id": group})).json()["policies"] == [theirs]


async def test_auto_selects_the_cheapest_model(sandbox: Tenant) -> None:
    policy = await made(sandbox)
    answer = await chat(sandbox.user)
    assert (answer.status_code, answer.headers["X-Gateway-Model"]) == (200, "stream-1"), answer.text
    assert answer.headers["X-Gateway-Fallbacks"] == "0"
    simulation = await simulated(sandbox, policy)
    assert simulation["selected_model"]["model_id"] == "stream-1"
    assert [item["model_id"] for item in simulation["fallback_sequence"]][:2] == ["stream-2", "echo"]
    assert simulation["fallback_sequence"][0]["estimated_cost_usd"] == 0.004
    assert simulation["cost_cap_check"] == {"estimated_cost_usd": 0.002, "limit_usd": None, "would_block": False}


async def test_the_record_names_the_routing_policy(platform: RunningPlatform, sandbox: Tenant) -> None:
    policy = await made(sandbox)
    request_id = (await chat(sandbox.user)).headers["X-Request-Id"]
    await drained(platform)
    records = (await sandbox.admin.client.get("/api/v1/usage/records")).json()
    result = next(record for record in records["records"] if record["request_id"] == request_id)
    assert (result["routing_policy_id"], result["model_id"]) == (policy["policy_id"], "stream-1")


async def test_a_named_model_answers_itself(sandbox: Tenant) -> None:
    await made(sandbox)
    assert (await chat(sandbox.user, "sandbox/echo")).headers["X-Gateway-Model"] == "echo"


async def test_the_chain_is_used_if_a_named_model_fails(sandbox: Tenant) -> None:
    await made(sandbox, fallback_chain=chain("stream-2", "echo"))
    answer = await chat(sandbox.user, "sandbox/status-503")
    assert (answer.status_code, answer.headers["X-Gateway-Model"]) == (200, "stream-2")
    assert answer.headers["X-Gateway-Fallbacks"] == "1"


async def test_the_chain_is_not_used_for_an_unknown_model(sandbox: Tenant) -> None:
    await made(sandbox, fallback_chain=chain("echo"))
    answer = await chat(sandbox.user, "sandbox/ecco")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


async def test_the_chain_is_used_if_a_model_is_switched_off(platform: RunningPlatform, sandbox: Tenant) -> None:
    await made(sandbox, fallback_chain=chain("stream-1", "stream-2"))
    for model in ("echo", "stream-1"):
        (row,) = platform.sql(
            "SELECT id FROM model_configs WHERE tenant_id = %s AND model_id = %s", [sandbox.id, model]
        )
        path = f"/api/v1/admin/kill-switch/models/{row[0]}/disable"
        assert (await sandbox.admin.client.post(path, json={"reason": "other"})).status_code == 200
    assert (await chat(sandbox.user, "sandbox/echo")).headers["X-Gateway-Model"] == "stream-2"
    assert (await chat(sandbox.user)).headers["X-Gateway-Model"] == "stream-2"


async def test_a_groups_policy_precedes_the_default(sandbox: Tenant) -> None:
    await made(sandbox)
    group = await new_group(sandbox, sandbox.user)
    policy = await made(
        sandbox, group_ids=[group], strategy="manual_fallback", fallback_chain=chain("echo", "stream-1")
    )
    assert (await chat(sandbox.user)).headers["X-Gateway-Model"] == "echo"
    assert (await chat(sandbox.admin)).headers["X-Gateway-Model"] == "stream-1"
    assert (await sandbox.admin.client.delete(f"{POLICIES}/{policy['policy_id']}")).status_code == 204
    assert (await chat(sandbox.user)).headers["X-Gateway-Model"] == "stream-1"


async def test_of_several_groups_the_oldest_policy_applies(sandbox: Tenant) -> None:
    groups = [await new_group(sandbox, sandbox.user) for _ in range(2)]
    for group, model in zip(reversed(groups), ("stream-2", "echo"), strict=True):
        await made(sandbox, group_ids=[group], strategy="manual_fallback", fallback_chain=chain(model))
    assert (await chat(sandbox.user)).headers["X-Gateway-Model"] == "stream-2"


async def test_a_request_above_the_cap_is_402_that_a_stock_client_shows(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    policy = await made(sandbox, cost_cap={"max_cost_per_request_usd": 0.001, "action_on_exceed": "block"})
    key = await platform.new_key(sandbox.user)
    async with platform.listening() as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
        with pytest.raises(openai.APIStatusError) as raised:
            await client.chat.completions.create(
                model="sandbox/echo", max_tokens=10_000, messages=[{"role": "user", "content": "hello"}]
            )
    assert raised.value.status_code == 402
    error: Any = raised.value.body
    assert (error["type"], error["code"], error["policy_id"]) == (
        "cost_cap_exceeded", "cost_cap_exceeded", policy["policy_id"],
    )  # fmt: skip
    assert error["limit_usd"] == 0.001
    assert 0.03 <= error["estimated_cost_usd"] < 0.031
    assert (await chat(sandbox.user, max_tokens=100)).status_code == 200


async def test_above_the_cap_the_cheapest_model_can_answer(sandbox: Tenant) -> None:
    cap = {"max_cost_per_request_usd": 0.012, "action_on_exceed": "use_cheapest"}
    policy = await made(sandbox, cost_cap=cap)
    assert (await chat(sandbox.user, "sandbox/echo", max_tokens=1_000)).headers["X-Gateway-Model"] == "echo"
    assert (await chat(sandbox.user, "sandbox/echo", max_tokens=10_000)).headers["X-Gateway-Model"] == "stream-1"
    assert (await chat(sandbox.user, "sandbox/echo", max_tokens=20_000)).status_code == 402
    simulation = await simulated(sandbox, policy, model="sandbox/echo", estimated_output_tokens=10_000)
    assert simulation["selected_model"]["model_id"] == "stream-1"
    assert simulation["cost_cap_check"] == {"estimated_cost_usd": 0.033, "limit_usd": 0.012, "would_block": False}


async def test_above_the_cap_a_warning_is_in_the_audit_log(platform: RunningPlatform, sandbox: Tenant) -> None:
    cap = {"max_cost_per_request_usd": 0.001, "action_on_exceed": "warn"}
    policy = await made(sandbox, cost_cap=cap)
    assert (await chat(sandbox.user, max_tokens=10_000)).status_code == 200
    await drained(platform)
    (event,) = await platform.audit(sandbox, "gateway.request")
    assert event["details"]["rules"] == [
        {
            "kind": "cost_cap", "rule_id": policy["policy_id"], "rule_name": "cheap", "action": "warn",
            "result": "exceeded", "model": "sandbox/stream-1",
        }
    ]  # fmt: skip


async def test_a_simulation_reports_a_blocked_request(sandbox: Tenant) -> None:
    cap = {"max_cost_per_request_usd": 0.001, "action_on_exceed": "block"}
    policy = await made(sandbox, cost_cap=cap, enabled=False)
    simulation = await simulated(sandbox, policy)
    assert simulation["cost_cap_check"] == {"estimated_cost_usd": 0.002, "limit_usd": 0.001, "would_block": True}
    assert (simulation["selected_model"]["model_id"], simulation["refusal"]["code"]) == (
        "stream-1",
        "cost_cap_exceeded",
    )


async def test_a_simulation_applies_the_groups_model_access(sandbox: Tenant) -> None:
    policy = await made(sandbox)
    group = await new_group(sandbox)
    access = {"model_id": "sandbox/stream-1", "access_type": "DENY"}
    await sandbox.admin.client.post(f"/api/admin/groups/{group}/model-access", json=access)
    assert (await simulated(sandbox, policy, group_id=group))["selected_model"]["model_id"] == "stream-2"
    assert (await simulated(sandbox, policy))["selected_model"]["model_id"] == "stream-1"


async def test_a_simulation_explains_every_candidate(sandbox: Tenant) -> None:
    filters = {"excluded_models": ["sandbox/status-503"]}
    cap = {"max_cost_per_request_usd": 0.005, "action_on_exceed": "block"}
    policy = await made(sandbox, model_filters=filters, cost_cap=cap)
    group = await new_group(sandbox)
    access = {"model_id": "sandbox/stream-1", "access_type": "DENY"}
    await sandbox.admin.client.post(f"/api/admin/groups/{group}/model-access", json=access)
    candidates = (await simulated(sandbox, policy, group_id=group))["candidates"]
    assert [(item["model_id"], item["outcome"], item["reason"]) for item in candidates] == [
        ("stream-2", "selected", "cost_optimized: the cheapest capable model"),
        ("echo", "rejected", "above the cost cap"),
        ("embed", "rejected", "serves only embeddings"),
        ("status-400", "rejected", "has no price, so that the cost cap cannot be checked"),
        ("stream-1", "rejected", "model access does not allow it"),
        ("status-503", "rejected", "excluded by the policy's filters: excluded_models"),
    ]
    assert [item["estimated_cost_usd"] for item in candidates[:2]] == [0.004, 0.006]


async def test_a_simulation_of_an_alias_orders_its_deployments_and_changes_no_share(sandbox: Tenant) -> None:
    policy = await made(sandbox, fallback_chain=chain("stream-2"))
    deployments = [
        {"provider": "sandbox", "model_id": "echo", "tier": 1},
        {"provider": "sandbox", "model_id": "stream-1", "weight": 3},
        {"provider": "sandbox", "model_id": "status-503", "weight": 1},
    ]
    body = {"name": "fast", "deployments": deployments}
    assert (await sandbox.admin.client.post("/api/v1/admin/model-aliases", json=body)).status_code == 201
    simulations = [await simulated(sandbox, policy, model="fast") for _ in range(5)]
    assert simulations == simulations[:1] * 5
    first, *others = simulations[0]["candidates"]
    assert (first["outcome"], first["reason"]) == ("selected", "weighted: first of the alias fast, in tier 0")
    assert {first["model_id"], others[0]["model_id"]} == {"stream-1", "status-503"}
    assert [item["model_id"] for item in others[1:3]] == ["echo", "stream-2"]
    assert {item["outcome"] for item in others[:3]} == {"fallback"}


async def test_a_simulation_explains_why_models_are_behind_a_named_one(sandbox: Tenant) -> None:
    policy = await made(sandbox, fallback_chain=chain("stream-2"))
    candidates = (await simulated(sandbox, policy, model="sandbox/echo"))["candidates"]
    assert [(item["model_id"], item["outcome"]) for item in candidates[:2]] == [
        ("echo", "selected"),
        ("stream-2", "fallback"),
    ]
    assert {item["reason"] for item in candidates[2:]} == {
        "the request specifies another model, and this one is not in the fallback chain"
    }
    group = await new_group(sandbox)
    access = {"model_id": "sandbox/echo", "access_type": "DENY"}
    await sandbox.admin.client.post(f"/api/admin/groups/{group}/model-access", json=access)
    refused = await simulated(sandbox, policy, model="sandbox/echo", group_id=group)
    reasons = {item["model_id"]: item["reason"] for item in refused["candidates"]}
    assert refused["selected_model"] is None
    assert reasons["echo"] == "model access does not allow it"
    assert reasons["stream-2"] == "the request is refused before"
    (_, *rejected) = (await simulated(sandbox, policy))["candidates"]
    reasons = {item["model_id"]: item["reason"] for item in rejected}
    assert reasons["echo"] == "not the first choice, and not in the fallback chain"
    policy = await made(sandbox, name="manual", strategy="manual_fallback", enabled=False, fallback_chain=chain("echo"))
    reasons = {item["model_id"]: item["reason"] for item in (await simulated(sandbox, policy))["candidates"]}
    assert reasons["stream-1"] == "not in the fallback chain"


async def test_a_simulation_names_the_capabilities_that_a_model_lacks(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    able = Jsonb({"vision": True})
    query = "UPDATE model_configs SET capabilities = %s WHERE tenant_id = %s AND model_id = 'echo'"
    platform.sql(query, [able, sandbox.id])
    await platform.host.policies.changed({str(sandbox.id)})
    candidates = (await simulated(sandbox, await made(sandbox), capabilities_needed=["vision"]))["candidates"]
    reasons = {item["model_id"]: item["reason"] for item in candidates}
    assert candidates[0]["model_id"] == "echo"
    assert reasons["stream-1"] == "the catalog does not list vision"


async def test_a_simulation_reports_an_unknown_model(sandbox: Tenant) -> None:
    simulation = await simulated(sandbox, await made(sandbox), model="sandbox/ecco")
    assert (simulation["selected_model"], simulation["refusal"]["code"]) == (None, "model_not_found")


@pytest.mark.parametrize(
    ("changed", "status"),
    [({"policy_id": str(uuid4())}, 404), ({"request": {**SIMULATED, "group_id": str(uuid4())}}, 422)],
)
async def test_a_simulation_of_unknown_ids_is_refused(sandbox: Tenant, changed: dict[str, Any], status: int) -> None:
    body = {"policy_id": (await made(sandbox))["policy_id"], "request": SIMULATED, **changed}
    answer = await sandbox.admin.client.post(f"{BASE}/simulate", json=body)
    assert answer.status_code == status, answer.text


async def test_another_organizations_policy_cannot_be_simulated(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await made(other_tenant)
    body = {"policy_id": theirs["policy_id"], "request": SIMULATED}
    assert (await tenant.admin.client.post(f"{BASE}/simulate", json=body)).status_code == 404


async def test_filters_limit_the_candidates(sandbox: Tenant) -> None:
    await made(sandbox, model_filters={"excluded_models": ["sandbox/stream-1"]})
    assert (await chat(sandbox.user)).headers["X-Gateway-Model"] == "stream-2"


async def test_a_capability_that_no_model_has_is_a_clear_error(sandbox: Tenant) -> None:
    await made(sandbox, model_filters={"min_context_window": 1_000_000})
    answer = await chat(sandbox.user)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "no_capable_model")


async def test_round_robin_takes_turns(sandbox: Tenant) -> None:
    await made(sandbox, strategy="round_robin", model_filters={"max_cost_per_1k_input_tokens_usd": 1})
    seen = [(await chat(sandbox.user)).headers["X-Gateway-Model"] for _ in range(6)]
    assert sorted(seen[:3]) == ["echo", "stream-1", "stream-2"]
    assert seen[:3] == seen[3:]


async def test_a_flag_switches_all_policies_off(sandbox: Tenant) -> None:
    await made(sandbox)
    flag = "/api/v1/admin/org/feature-flags/cost_routing"
    assert (await sandbox.admin.client.patch(flag, json={"enabled": False})).status_code == 200
    # Without a policy, `auto` selects the default model, which does not exist here.
    assert (await chat(sandbox.user)).status_code == 404


async def test_an_enabled_policy_of_the_same_group_is_a_conflict(tenant: Tenant) -> None:
    group, other = await new_group(tenant), await new_group(tenant)
    first = await made(tenant, group_ids=[group])
    second = await made(tenant, group_ids=[other])
    disabled = await made(tenant, group_ids=[group], enabled=False)
    client = tenant.admin.client
    for answer in (
        await client.post(POLICIES, json={**POLICY, "group_ids": [other, group]}),
        await client.put(f"{POLICIES}/{second['policy_id']}", json={**POLICY, "group_ids": [group]}),
        await client.patch(f"{POLICIES}/{disabled['policy_id']}", json={"enabled": True}),
    ):
        body = answer.json()
        assert (answer.status_code, body["error"]) == (409, "policy_conflict"), body
        assert body["conflicting_policy_id"] == first["policy_id"]
        assert "cheap" in body["message"]


async def test_there_is_one_default_policy(tenant: Tenant) -> None:
    first = await made(tenant)
    answer = await tenant.admin.client.post(POLICIES, json=POLICY)
    assert (answer.status_code, answer.json()["conflicting_policy_id"]) == (409, first["policy_id"])


async def test_there_are_at_most_200_policies_under_concurrent_creation(
    tenant: Tenant, platform: RunningPlatform
) -> None:
    first = await made(tenant, enabled=False)
    platform.sql(
        "INSERT INTO cost_routing_policies (id, tenant_id, name, enabled, strategy, group_ids, model_filters,"
        " fallback_chain) SELECT gen_random_uuid(), tenant_id, name, enabled, strategy, group_ids, model_filters,"
        " fallback_chain FROM cost_routing_policies, generate_series(1, %s) WHERE id = %s",
        [MAX_POLICIES - 3, first["policy_id"]],
    )
    body = {**POLICY, "enabled": False}
    answers = await asyncio.gather(*(tenant.admin.client.post(POLICIES, json=body) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 409, 409, 409, 409]
    assert {answer.json()["error"] for answer in answers if answer.status_code == 409} == {"too_many_policies"}


async def test_of_two_concurrent_defaults_one_is_a_conflict(tenant: Tenant) -> None:
    answers = await asyncio.gather(*(tenant.admin.client.post(POLICIES, json=POLICY) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409, 409]


async def test_put_replaces_all_fields(sandbox: Tenant) -> None:
    policy = await made(
        sandbox, description="x", fallback_chain=chain("echo"), latency_budget_ms=500, cache_ttl_seconds=60,
        cost_cap={"max_cost_per_request_usd": 1, "action_on_exceed": "warn"}, model_filters={"min_context_window": 5},
    )  # fmt: skip
    path = f"{POLICIES}/{policy['policy_id']}"
    answer = await sandbox.admin.client.put(path, json={"name": "other", "strategy": "balanced"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        **policy, "name": "other", "strategy": "balanced", "description": None, "fallback_chain": [],
        "latency_budget_ms": None, "cache_ttl_seconds": None, "cost_cap": None,
        "model_filters": {**policy["model_filters"], "min_context_window": None},
        "updated_at": answer.json()["updated_at"],
    }  # fmt: skip


async def test_patch_changes_only_the_named_fields(sandbox: Tenant) -> None:
    policy = await made(sandbox, fallback_chain=chain("echo"), latency_budget_ms=500)
    path = f"{POLICIES}/{policy['policy_id']}"
    changed = {"strategy": "balanced", "latency_budget_ms": None}
    answer = await sandbox.admin.client.patch(path, json=changed)
    assert answer.json() == {**policy, **changed, "updated_at": answer.json()["updated_at"]}


@pytest.mark.parametrize(("field", "value"), [("name", None), ("description", "other"), ("model_filters", None)])
async def test_patch_refuses_fields_that_cannot_be_patched(tenant: Tenant, field: str, value: str | None) -> None:
    policy = await made(tenant)
    answer = await tenant.admin.client.patch(f"{POLICIES}/{policy['policy_id']}", json={field: value})
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, field)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"strategy": "best"}, "strategy"),
        ({"name": ""}, "name"),
        ({"model_filters": {"required_capabilities": ["telepathy"]}}, "model_filters.required_capabilities.0"),
        ({"model_filters": {"excluded_models": ["sandbox/ecco"]}}, "model_filters.excluded_models.0"),
        ({"model_filters": {"included_providers": ["nobody"]}}, "model_filters.included_providers.0"),
        ({"model_filters": {"surprise": 1}}, "model_filters.surprise"),
        ({"fallback_chain": chain("echo", "ecco")}, "fallback_chain.1.model_id"),
        ({"fallback_chain": chain("echo", "echo")}, "fallback_chain.1.model_id"),
        ({"fallback_chain": [{"provider": "nobody", "model_id": "echo"}]}, "fallback_chain.0.provider"),
        ({"fallback_chain": [{"provider": "sandbox"}]}, "fallback_chain.0.model_id"),
        ({"strategy": "manual_fallback"}, "fallback_chain"),
        (
            {"cost_cap": {"max_cost_per_request_usd": 0, "action_on_exceed": "block"}},
            "cost_cap.max_cost_per_request_usd",
        ),
        ({"cost_cap": {"max_cost_per_request_usd": 1, "action_on_exceed": "pay"}}, "cost_cap.action_on_exceed"),
        ({"cost_cap": {"max_cost_per_request_usd": 1}}, "cost_cap.action_on_exceed"),
        ({"latency_budget_ms": 0}, "latency_budget_ms"),
        ({"cache_ttl_seconds": 100_000}, "cache_ttl_seconds"),
        ({"group_ids": [str(uuid4())]}, "group_ids.0"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_bad_input_is_422_and_names_the_field(sandbox: Tenant, changed: dict[str, Any], field: str) -> None:
    answer = await sandbox.admin.client.post(POLICIES, json={**POLICY, **changed})
    body = answer.json()
    assert (answer.status_code, body["error"], body["details"][0]["field"]) == (422, "validation_error", field), body


async def test_malformed_json_is_400(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(POLICIES, content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_a_chain_with_a_removed_endpoint_is_422_until_it_is_changed(tenant: Tenant) -> None:
    byoe = {
        "id": "own", "name": "Own", "base_url": "https://models.example.com/v1", "format": "openai",
        "models": [
            {
                "model_id": "m", "display_name": "M", "context_window": 8_000, "input_cost_per_1k": 1,
                "output_cost_per_1k": 1,
            }
        ],
    }  # fmt: skip
    client = tenant.admin.client
    assert (await client.post("/api/admin/providers/byoe", json=byoe)).status_code == 201
    policy = await made(tenant, fallback_chain=[{"provider": "own", "model_id": "m"}])
    path = f"{POLICIES}/{policy['policy_id']}"
    assert (await client.delete("/api/admin/providers/byoe/own")).status_code == 204
    assert (await client.get(path)).json()["fallback_chain"] == policy["fallback_chain"]
    answer = await client.patch(path, json={"latency_budget_ms": 100})
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "fallback_chain.0.provider")
    assert (await client.patch(path, json={"fallback_chain": []})).status_code == 200


async def test_a_group_that_is_removed_does_not_make_its_policy_the_default(sandbox: Tenant) -> None:
    group = await new_group(sandbox, sandbox.user)
    await made(sandbox, group_ids=[group])
    assert (await sandbox.admin.client.delete(f"/api/admin/groups/{group}")).status_code == 204
    assert (await chat(sandbox.user)).status_code == 404


async def test_another_organizations_policy_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await made(other_tenant)
    for method, body in (("GET", None), ("PUT", POLICY), ("PATCH", {"enabled": False}), ("DELETE", None)):
        answer = await tenant.admin.client.request(method, f"{POLICIES}/{theirs['policy_id']}", json=body)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def test_users_and_auditors_change_nothing(tenant: Tenant) -> None:
    policy = await made(tenant)
    path = f"{POLICIES}/{policy['policy_id']}"
    for method, at, body in (
        ("POST", POLICIES, POLICY),
        ("PUT", path, POLICY),
        ("PATCH", path, {}),
        ("DELETE", path, None),
    ):
        for person in (tenant.user, tenant.auditor):
            assert (await person.client.request(method, at, json=body)).status_code == 403
    assert (await tenant.user.client.get(POLICIES)).status_code == 403


async def test_every_change_is_in_the_audit_log(platform: RunningPlatform, tenant: Tenant) -> None:
    policy = await made(tenant)
    path = f"{POLICIES}/{policy['policy_id']}"
    await tenant.admin.client.patch(path, json={"strategy": "balanced"})
    await tenant.admin.client.delete(path)
    for action, result in (
        ("routing_policy.created", "policy"), ("routing_policy.updated", "changed"), ("routing_policy.deleted", "name"),
    ):  # fmt: skip
        (event,) = await platform.audit(tenant, action)
        assert (event["resource_id"], result in event["details"]) == (policy["policy_id"], True)


async def test_analytics_count_requests_by_model(platform: RunningPlatform, sandbox: Tenant) -> None:
    policy = await made(sandbox, fallback_chain=chain("stream-2"))
    for model in ("auto", "auto", "sandbox/status-503"):
        assert (await chat(sandbox.user, model)).status_code == 200
    path = f"{POLICIES}/{policy['policy_id']}"
    cap = {"max_cost_per_request_usd": 0.000001, "action_on_exceed": "block"}
    await sandbox.admin.client.patch(path, json={"cost_cap": cap})
    assert (await chat(sandbox.user)).status_code == 402
    await drained(platform)
    query = {"period": "week", "policy_id": policy["policy_id"]}
    body = (await sandbox.auditor.client.get(f"{BASE}/analytics", params=query)).json()
    decisions = body["routing_decisions"]
    assert (body["period"], body["total_requests"]) == ("week", 4)
    assert (decisions["cost_cap_blocks"], decisions["fallback_activations"]) == (1, 1)
    assert [(entry["model_id"], entry["requests"], entry["pct"]) for entry in decisions["by_model"]] == [
        ("stream-1", 2, 66.67), ("stream-2", 1, 33.33),
    ]  # fmt: skip
    assert body["total_cost_usd"] == pytest.approx(sum(entry["cost_usd"] for entry in decisions["by_model"]))
    assert body["avg_cost_per_request_usd"] == pytest.approx(body["total_cost_usd"] / 4, abs=1e-9)
    other = (await sandbox.admin.client.get(f"{BASE}/analytics", params={"policy_id": str(uuid4())})).json()
    assert (other["total_requests"], other["avg_cost_per_request_usd"]) == (0, 0)


async def test_analytics_count_requests_by_deployment(platform: RunningPlatform, tenant: Tenant) -> None:
    policy, group = uuid4(), uuid4()
    journal = Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal")
    fast: dict[str, Any] = {"model_alias": "fast", "cost_usd": "0.5", "latency_ms": 0}
    await journal.append(
        *(outcome(tenant.id, **fast, provider="east", routing_policy_id=str(policy)) for _ in range(3)),
        outcome(tenant.id, **fast, provider="west", group_id=group),
        outcome(tenant.id, **fast, provider="west", shadow=True),
        outcome(tenant.id, **{**fast, "model_alias": "cheap"}, provider="west"),
        outcome(tenant.id, **fast, provider=None, model_id=None, outcome="error", status=502),
        outcome(tenant.id, provider="west"),
    )
    await journal.drain()

    async def deployments(**query: str) -> list[tuple[Any, ...]]:
        answer = await tenant.auditor.client.get(f"{BASE}/analytics", params={"period": "week", **query})
        names = ("model_alias", "provider", "model_id", "shadow", "requests", "cost_usd", "pct")
        return [tuple(entry[name] for name in names) for entry in answer.json()["routing_decisions"]["by_deployment"]]

    assert await deployments() == [
        ("fast", "east", "echo", False, 3, 1.5, 75.0), ("cheap", "west", "echo", False, 1, 0.5, 100.0),
        ("fast", "west", "echo", False, 1, 0.5, 25.0), ("fast", "west", "echo", True, 1, 0.5, 0.0),
    ]  # fmt: skip
    assert await deployments(policy_id=str(policy)) == [("fast", "east", "echo", False, 3, 1.5, 100.0)]
    assert await deployments(group_id=str(group)) == [("fast", "west", "echo", False, 1, 0.5, 100.0)]


async def test_analytics_show_no_cost_for_a_model_without_a_price(platform: RunningPlatform, sandbox: Tenant) -> None:
    platform.sql(
        "UPDATE model_configs SET cost_per_input_token = NULL, cost_per_output_token = NULL"
        " WHERE tenant_id = %s AND model_id = 'stream-1'", [sandbox.id],
    )  # fmt: skip
    await platform.host.policies.changed({str(sandbox.id)})
    for model in ("sandbox/stream-1", "sandbox/stream-2"):
        assert (await chat(sandbox.user, model)).status_code == 200
    await drained(platform)
    report = (await sandbox.auditor.client.get(f"{BASE}/analytics", params={"period": "day"})).json()
    costs = {entry["model_id"]: entry["cost_usd"] for entry in report["routing_decisions"]["by_model"]}
    assert costs["stream-1"] is None
    assert costs["stream-2"] > 0


async def drained(platform: RunningPlatform) -> None:
    """Wait until all answers so far are recorded."""
    await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()


async def new_group(tenant: Tenant, *members: Person) -> str:
    answer = await tenant.admin.client.post("/api/admin/groups", json={"name": f"g {uuid4()}"})
    group: str = answer.json()["id"]
    for member in members:
        body = {"user_id": str(member.id)}
        assert (await tenant.admin.client.post(f"/api/admin/groups/{group}/members", json=body)).status_code < 300
    return group
