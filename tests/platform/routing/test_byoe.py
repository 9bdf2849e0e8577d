"""Bring your own endpoint: a provider and its models in one body (docs/providers.md)."""

from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/admin/providers/byoe"
CATALOG = "/api/admin/models/catalog/"
KEY = "sk-Vq83-never-to-be-seen-again"


def model(model_id: str = "small", **changes: Any) -> dict[str, Any]:
    return {
        "model_id": model_id, "display_name": f"Model {model_id}", "context_window": 8_000,
        "input_cost_per_1k": 0.0005, "output_cost_per_1k": 0.0015, **changes,
    }  # fmt: skip


def endpoint(fake: Any, **changes: Any) -> dict[str, Any]:
    return {
        "id": "my-own", "name": "My own", "base_url": fake.url + "/v1", "format": "openai", "models": [model()],
        "api_key": KEY, **changes,
    }  # fmt: skip


async def make(tenant: Tenant, fake: Any, **changes: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json=endpoint(fake, **changes))
    assert answer.status_code == 201, answer.text
    provider: dict[str, Any] = answer.json()
    return provider


async def catalog(tenant: Tenant) -> dict[str, dict[str, Any]]:
    """Return the catalog entries by model id."""
    items = (await tenant.admin.client.get(CATALOG)).json()["items"]
    return {entry["model_id"]: entry for entry in items}


async def chat(tenant: Tenant, name: str = "my-own/small") -> int:
    body = {"model": name, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
    return (await tenant.user.client.post("/v1/chat/completions", json=body)).status_code


async def test_a_new_endpoint_answers_through_the_gateway(tenant: Tenant, fake: Any) -> None:
    provider = await make(tenant, fake, timeout_ms=5_000)
    assert (provider["id"], provider["name"], provider["type"], provider["status"]) == (
        "my-own", "My own", "byoe", "active",
    )  # fmt: skip
    assert (provider["credentials_configured"], provider["models_enabled"]) == (True, 1)
    assert provider["config"] == {
        "base_url": fake.url + "/v1", "format": "openai", "timeout_ms": 5_000, "max_retries": 2,
    }  # fmt: skip
    assert await chat(tenant) == 200
    assert fake.paths == ["/v1/chat/completions"]
    assert fake.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_an_endpoint_of_the_other_format_answers_the_same_call(tenant: Tenant, fake: Any) -> None:
    await make(tenant, fake, format="anthropic", base_url=fake.url)
    assert await chat(tenant) == 200
    assert fake.paths == ["/v1/messages"]
    assert fake.requests[0].headers["x-api-key"] == KEY


async def test_prices_per_1k_tokens_become_prices_per_token_in_the_catalog(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await make(tenant, fake, models=[model(input_cost_per_1k=0.0003, output_cost_per_1k=0.1)])
    entry = (await catalog(tenant))["small"]
    assert (entry["cost_per_input_token"], entry["cost_per_output_token"]) == (0.0000003, 0.0001)
    assert (entry["provider"], entry["display_name"], entry["context_window"]) == ("my-own", "Model small", 8_000)
    stored = platform.sql("SELECT cost_per_input_token::text FROM model_configs WHERE tenant_id = %s", [tenant.id])
    assert stored == [("0.0000003",)]


async def test_the_key_is_stored_only_sealed(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    assert KEY not in str(await make(tenant, fake))
    for table in ("providers", "model_configs", "audit_events", "changes", "outbox"):
        assert platform.sql(f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE %s", [f"%{KEY}%"]) == [(0,)]
    (event,) = await platform.audit(tenant, "provider.created")
    assert event["details"]["models"] == ["small"]


async def test_an_endpoint_needs_no_key(tenant: Tenant, fake: Any) -> None:
    body = endpoint(fake)
    del body["api_key"]
    answer = await tenant.admin.client.post(BASE, json=body)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (201, False)
    assert await chat(tenant) == 200
    assert "authorization" not in fake.requests[0].headers


async def test_discovery_asks_an_endpoint_without_a_key(tenant: Tenant, fake: Any) -> None:
    body = endpoint(fake)
    del body["api_key"]
    assert (await tenant.admin.client.post(BASE, json=body)).status_code == 201
    models = (await tenant.admin.client.get("/api/admin/models/catalog/discover")).json()
    assert {model["provider"] for model in models} == {"my-own"}


async def test_a_models_capabilities_serve_policies_that_require_them(tenant: Tenant, fake: Any) -> None:
    able = {"vision": True, "function_calling": True}
    await make(tenant, fake, models=[model(capabilities=able, max_output_tokens=99), model("plain")])
    entries = await catalog(tenant)
    assert (entries["small"]["capabilities"]["vision"], entries["plain"]["capabilities"]["vision"]) == (True, None)
    assert (entries["small"]["max_output_tokens"], entries["small"]["supports_vision"]) == (99, True)
    policy = {
        "name": "p", "strategy": "cost_optimized", "enabled": True,
        "model_filters": {"required_capabilities": ["vision"]},
    }  # fmt: skip
    made = await tenant.admin.client.post("/api/admin/cost-routing/policies", json=policy)
    assert made.status_code == 201, made.text
    assert await chat(tenant, "auto") == 200
    # Omitted fields keep their values.
    await tenant.admin.client.patch(f"{BASE}/my-own", json={"models": [model()]})
    assert (await catalog(tenant))["small"]["capabilities"]["vision"] is True
    bad = endpoint(fake, id="other", models=[model(capabilities={"max_context_window": 5})])
    assert (await tenant.admin.client.post(BASE, json=bad)).status_code == 422


async def test_a_configuration_can_be_sent_as_it_is_shown(tenant: Tenant, fake: Any) -> None:
    await make(tenant, fake)
    path = f"{BASE}/my-own"
    shown = (await tenant.admin.client.patch(path, json={"config": {"timeout_ms": 4000, "max_retries": 1}})).json()
    assert (shown["config"]["timeout_ms"], shown["config"]["max_retries"]) == (4000, 1)
    twice = await tenant.admin.client.patch(path, json={"timeout_ms": 1000, "config": {"timeout_ms": 4000}})
    assert (twice.status_code, "timeout_ms" in twice.text) == (422, True)
    # The stored key is not sent to another host in this way either.
    moved = await tenant.admin.client.patch(path, json={"config": {"base_url": "http://127.0.0.1:9/v1"}})
    assert (moved.status_code, "api_key" in moved.text) == (422, True)


async def test_an_id_is_unique_in_an_organization(tenant: Tenant, other_tenant: Tenant, fake: Any) -> None:
    await make(tenant, fake)
    again = await tenant.admin.client.post(BASE, json=endpoint(fake))
    assert (again.status_code, again.json()) == (409, {"detail": "A provider with this id exists."})
    await make(other_tenant, fake)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": "has space"}, "id"),
        ({"id": "under_score"}, "id"),
        ({"id": ""}, "id"),
        ({"id": "openai"}, "id"),
        ({"id": "bedrock"}, "id"),
        ({"name": ""}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"format": "grpc"}, "format"),
        ({"base_url": "not a url"}, "base_url"),
        ({"base_url": "file:///etc/passwd"}, "base_url"),
        ({"base_url": "http://169.254.169.254/v1"}, "base_url"),
        ({"base_url": "http://2852039166/v1"}, "base_url"),
        ({"api_key": "two\nlines"}, "api_key"),
        ({"timeout_ms": 99}, "timeout_ms"),
        ({"models": []}, "models"),
        ({"models": [model(), model()]}, "twice"),
        ({"models": [{"model_id": "x"}]}, "display_name"),
        ({"models": [model(input_cost_per_1k=-1)]}, "input_cost_per_1k"),
        ({"models": [model(input_cost_per_1k=250)]}, "input_cost_per_1k"),
        ({"models": [model(context_window=0)]}, "context_window"),
        ({"models": [model("has space")]}, "model_id"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_a_bad_field_is_named(
    platform: RunningPlatform, tenant: Tenant, fake: Any, changes: dict[str, Any], field: str
) -> None:
    answer = await tenant.admin.client.post(BASE, json=endpoint(fake, **changes))
    assert answer.status_code == 422, answer.text
    assert field in answer.text
    assert platform.sql("SELECT id FROM providers WHERE tenant_id = %s", [tenant.id]) == []


@pytest.mark.parametrize("missing", ["id", "name", "base_url", "format", "models"])
async def test_a_missing_required_field_is_named(tenant: Tenant, fake: Any, missing: str) -> None:
    body = endpoint(fake)
    del body[missing]
    answer = await tenant.admin.client.post(BASE, json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", missing])


async def test_a_new_list_of_models_replaces_the_old_one(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await make(tenant, fake, models=[model("small"), model("large")])
    models = [model("large", display_name="Larger", input_cost_per_1k=1), model("new")]
    answer = await tenant.admin.client.patch(f"{BASE}/my-own", json={"models": models})
    assert (answer.status_code, answer.json()["models_enabled"]) == (200, 2)
    entries = await catalog(tenant)
    assert {name: entry["is_active"] for name, entry in entries.items()} == {"small": False, "large": True, "new": True}
    assert (entries["large"]["display_name"], entries["large"]["cost_per_input_token"]) == ("Larger", 0.001)
    assert await chat(tenant) == 404
    assert await chat(tenant, "my-own/new") == 200
    assert len(await platform.audit(tenant, "provider.updated")) == 1


async def test_a_partial_change_keeps_the_other_fields(tenant: Tenant, fake: Any) -> None:
    await make(tenant, fake)
    answer = await tenant.admin.client.patch(f"{BASE}/my-own", json={"name": "Other", "max_retries": 0})
    body = answer.json()
    assert (body["name"], body["config"]["max_retries"], body["config"]["format"]) == ("Other", 0, "openai")
    assert body["credentials_configured"] is True
    assert await chat(tenant) == 200


async def test_a_new_host_does_not_get_the_stored_key(tenant: Tenant, fake_providers: Any) -> None:
    honest, other = await fake_providers.start(), await fake_providers.start()
    await make(tenant, honest)
    path = f"{BASE}/my-own"
    refused = await tenant.admin.client.patch(path, json={"base_url": other.url + "/v1"})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["body", "api_key"])
    assert (await tenant.admin.client.patch(path, json={"base_url": honest.url + "/v1/x"})).status_code == 200
    moved = await tenant.admin.client.patch(path, json={"base_url": other.url + "/v1", "api_key": None})
    assert (moved.status_code, moved.json()["credentials_configured"]) == (200, False)
    assert await chat(tenant) == 200
    assert "authorization" not in other.requests[0].headers


async def test_a_deleted_endpoint_leaves_inactive_models(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await make(tenant, fake)
    assert (await tenant.admin.client.delete(f"{BASE}/my-own")).status_code == 204
    assert (await tenant.admin.client.get("/api/admin/providers/my-own")).status_code == 404
    entry = (await catalog(tenant))["small"]
    assert entry["is_active"] is False
    assert await chat(tenant) == 404
    assert (await tenant.admin.client.delete(f"{BASE}/my-own")).status_code == 404
    assert len(await platform.audit(tenant, "provider.deleted")) == 1
    back = await tenant.admin.client.put(f"{CATALOG}{entry['id']}", json={"is_active": True})
    assert (back.status_code, back.json()["detail"][0]["loc"]) == (422, ["body", "provider"])


async def test_an_endpoint_created_again_regains_its_models_and_keeps_kill_switches(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await make(tenant, fake)
    entry = (await catalog(tenant))["small"]
    off = f"/api/v1/admin/kill-switch/models/{entry['id']}/disable"
    assert (await tenant.admin.client.post(off, json={"reason": "security_event"})).status_code == 200
    await tenant.admin.client.delete(f"{BASE}/my-own")
    provider = await make(tenant, fake)
    assert (provider["status"], provider["models_enabled"]) == ("kill_switched", 1)
    assert (await catalog(tenant))["small"]["id"] == entry["id"]
    assert await chat(tenant) == 503
    assert fake.requests == []


async def test_only_own_endpoints_are_changed_or_removed_here(tenant: Tenant, fake: Any) -> None:
    credentials = "/api/admin/providers/{}/credentials"
    await tenant.admin.client.put(credentials.format("openai"), json={"api_key": KEY})
    assert (await tenant.admin.client.patch(f"{BASE}/openai", json={"name": "x"})).status_code == 404
    assert (await tenant.admin.client.delete(f"{BASE}/openai")).status_code == 404
    await tenant.admin.client.put(credentials.format("mine"), json={"base_url": fake.url})
    assert (await tenant.admin.client.delete(f"{BASE}/mine")).status_code == 204


async def test_a_provider_called_byoe_has_a_config_too(tenant: Tenant, fake: Any) -> None:
    await make(tenant, fake, id="byoe")
    answer = await tenant.admin.client.patch("/api/admin/providers/byoe/config", json={"timeout_ms": 700})
    assert (answer.status_code, answer.json()["config"]["timeout_ms"]) == (200, 700)
    reserved = await tenant.admin.client.post(BASE, json=endpoint(fake, id="config"))
    assert reserved.status_code == 422


async def test_a_fresh_second_factor_is_required_if_the_policy_says_so(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await platform.require_mfa(tenant.id)
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    for method, path in [("POST", BASE), ("PUT", "/api/admin/providers/openai/credentials")]:
        answer = await tenant.admin.client.request(method, path, json={})
        assert (answer.status_code, answer.json()["error"]) == (403, "mfa_required")
