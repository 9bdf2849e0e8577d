"""The model catalog in both variants (docs/providers.md, docs/variants.md)."""

import asyncio
import time
from decimal import Decimal
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.providers import ProviderModel
from gatehouse.platform.routing.model_catalog import discovery
from gatehouse.platform.routing.providers.probe import Prober

BASE = "/api/admin/models/catalog"
B = {"X-API-Variant": "b"}
CHAT = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def sandbox(tenant: Tenant) -> Tenant:
    """The organization with the sandbox as a provider."""
    answer = await tenant.admin.client.put("/api/admin/providers/sandbox/credentials", json={})
    assert answer.status_code == 200, answer.text
    return tenant


async def add(tenant: Tenant, model_id: str = "echo", **fields: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE + "/", json={"provider": "sandbox", "model_id": model_id, **fields})
    assert answer.status_code == 201, answer.text
    entry: dict[str, Any] = answer.json()
    return entry


async def chat(tenant: Tenant, model: str = "sandbox/echo") -> int:
    return (await tenant.user.client.post("/v1/chat/completions", json={**CHAT, "model": model})).status_code


async def test_an_entry_has_the_fields_of_both_variants(platform: RunningPlatform, sandbox: Tenant) -> None:
    entry = await add(sandbox)
    assert entry == {
        "id": entry["id"], "provider": "sandbox", "model_id": "echo", "display_name": None, "is_active": True,
        "is_default": False, "access": "open", "created_at": entry["created_at"],
        "updated_at": entry["updated_at"], "context_window": None,
        "max_output_tokens": None, "supports_vision": None,
        "capabilities": {
            "streaming": True, "function_calling": None, "vision": None, "structured_output": None,
            "embeddings": None, "code_execution": None, "reasoning": None,
            "moderation": None, "rerank": None, "image_generation": None, "transcription": None, "speech": None,
            "max_context_window": None,
        },
        "cost_per_input_token": None, "cost_per_output_token": None, "cost_per_cached_input_token": None,
        "cost_per_cache_write_token": None, "price_source": None, "price_recorded_on": None,
    }  # fmt: skip
    assert (await sandbox.auditor.client.get(f"{BASE}/{entry['id']}")).json() == entry
    (event,) = await platform.audit(sandbox, "model_config.created")
    assert (event["resource_id"], event["details"]["model_id"]) == (entry["id"], "echo")
    assert await chat(sandbox) == 200


async def test_two_names_of_the_same_thing_agree(sandbox: Tenant) -> None:
    a = await add(sandbox, "a", supports_vision=True, context_window=9_000)
    b = await add(sandbox, "b", capabilities={"vision": True, "max_context_window": 9_000})
    for entry in (a, b):
        assert (entry["supports_vision"], entry["capabilities"]["vision"]) == (True, True)
        assert (entry["context_window"], entry["capabilities"]["max_context_window"]) == (9_000, 9_000)
    changed = (await sandbox.admin.client.put(f"{BASE}/{b['id']}", json={"context_window": 5})).json()
    assert changed["capabilities"]["max_context_window"] == 5
    changed = (await sandbox.admin.client.put(f"{BASE}/{b['id']}", json={"context_window": None})).json()
    assert changed["capabilities"]["max_context_window"] is None
    for body, field in [
        ({"supports_vision": False, "capabilities": {"vision": True}}, "supports_vision"),
        ({"context_window": 5, "capabilities": {"max_context_window": 6}}, "context_window"),
    ]:
        answer = await sandbox.admin.client.put(f"{BASE}/{a['id']}", json=body)
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])


async def test_only_the_named_capabilities_change(sandbox: Tenant) -> None:
    entry = await add(sandbox, capabilities={"function_calling": True, "streaming": False})
    answer = await sandbox.admin.client.put(f"{BASE}/{entry['id']}", json={"capabilities": {"vision": True}})
    capabilities = answer.json()["capabilities"]
    assert (capabilities["function_calling"], capabilities["streaming"], capabilities["vision"]) == (True, False, True)


@pytest.mark.parametrize(
    "price",
    ["0.00000015", "0.000003", "0", "0.1", "0.000000000000001", "0.0000123456789012345", "1e-9", "0.00000019999999"],
)
async def test_prices_are_kept_exactly(platform: RunningPlatform, sandbox: Tenant, price: str) -> None:
    content = f'{{"provider": "sandbox", "model_id": "echo", "cost_per_input_token": {price},'
    content += f' "cost_per_output_token": "{price}"}}'
    headers = {"Content-Type": "application/json"}
    answer = await sandbox.admin.client.post(BASE + "/", content=content, headers=headers)
    assert answer.status_code == 201, answer.text
    result = answer.json(parse_float=Decimal, parse_int=Decimal)
    assert (result["cost_per_input_token"], result["cost_per_output_token"]) == (Decimal(price), Decimal(price))
    stored = platform.sql(
        "SELECT cost_per_input_token, cost_per_output_token FROM model_configs WHERE id = %s", [answer.json()["id"]]
    )
    assert stored == [(Decimal(price), Decimal(price))]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cost_per_input_token": -0.1}, "cost_per_input_token"),
        ({"cost_per_output_token": 3.0}, "cost_per_output_token"),
        ({"cost_per_cached_input_token": "NaN"}, "cost_per_cached_input_token"),
        ({"cost_per_cache_write_token": "Infinity"}, "cost_per_cache_write_token"),
        ({"cost_per_input_token": "0.00000123456789012345678"}, "cost_per_input_token"),
        ({"cost_per_input_token": "cheap"}, "cost_per_input_token"),
        ({"provider": "nobody"}, "provider"),
        ({"provider": "a\x00b"}, "provider"),
        ({"model_id": ""}, "model_id"),
        ({"model_id": "two words"}, "model_id"),
        ({"display_name": ""}, "display_name"),
        ({"is_active": "true"}, "is_active"),
        ({"access": "secret"}, "access"),
        ({"context_window": 0}, "context_window"),
        ({"capabilities": {"flying": True}}, "flying"),
        ({"kill_switch_active": False}, "kill_switch_active"),
    ],
)
async def test_a_bad_field_is_named(sandbox: Tenant, fields: dict[str, Any], field: str) -> None:
    body = {"provider": "sandbox", "model_id": "echo", **fields}
    answer = await sandbox.admin.client.post(BASE + "/", json=body)
    assert answer.status_code == 422, answer.text
    assert field in str(answer.json()["detail"][0]["loc"])


async def test_a_price_of_a_million_tokens_is_explained(sandbox: Tenant) -> None:
    entry = await add(sandbox)
    answer = await sandbox.admin.client.put(f"{BASE}/{entry['id']}", json={"cost_per_input_token": 3.0})
    assert answer.status_code == 422
    assert "USD per token" in answer.json()["detail"][0]["msg"]


async def test_a_pair_of_provider_and_model_is_unique(sandbox: Tenant) -> None:
    await add(sandbox)
    again = await sandbox.admin.client.post(BASE + "/", json={"provider": "sandbox", "model_id": "echo"})
    assert again.status_code == 409
    both = [sandbox.admin.client.post(BASE, json={"provider": "sandbox", "model_id": "tools"}) for _ in range(2)]
    assert sorted(answer.status_code for answer in await asyncio.gather(*both)) == [201, 409]


async def test_variant_b_requires_a_display_name(sandbox: Tenant) -> None:
    body = {"provider": "sandbox", "model_id": "echo"}
    missing = await sandbox.admin.client.post(BASE + "/", json=body, headers=B)
    assert (missing.status_code, missing.json()["detail"][0]["loc"]) == (422, ["body", "display_name"])
    created = await sandbox.admin.client.post(BASE + "/", json={**body, "display_name": "Echo"}, headers=B)
    assert (created.status_code, created.headers["X-API-Variant"]) == (201, "b")


async def test_lists_are_paged_by_their_variant(sandbox: Tenant) -> None:
    names = ["a", "b", "c"]
    for name in names:
        await add(sandbox, name, display_name=f"Model {name.upper()}", is_active=name != "b")
    client = sandbox.admin.client

    async def listed(query: str = "", **headers: str) -> tuple[list[str], dict[str, Any]]:
        body = (await client.get(f"{BASE}/{query}", headers=headers)).json()
        return [entry["model_id"] for entry in body.pop("items")], body

    assert await listed() == (["c", "b", "a"], {"total": 3, "page": 1, "per_page": 50})
    assert await listed("?page=2&per_page=2") == (["a"], {"total": 3, "page": 2, "per_page": 2})
    assert await listed("?page=2&page_size=2") == (["a"], {"total": 3, "page": 2, "page_size": 2})
    assert await listed(**B) == (["c", "b", "a"], {"total": 3, "page": 1, "page_size": 20})
    assert await listed("?search=MODEL+B") == (["b"], {"total": 1, "page": 1, "page_size": 20})
    assert await listed("?search=%25") == ([], {"total": 0, "page": 1, "page_size": 20})
    assert (await listed("?is_active=false"))[0] == ["b"]
    assert (await listed("?provider=sandbox&is_active=true"))[0] == ["c", "a"]
    assert (await listed("?provider=other"))[0] == []
    for query in ("page_size=201", "page_size=0", "page=0", "per_page=0", "is_active=perhaps", "search=%00"):
        assert (await client.get(f"{BASE}/?{query}")).status_code == 422, query


async def test_a_change_takes_effect_with_the_response(platform: RunningPlatform, sandbox: Tenant) -> None:
    entry = await add(sandbox)
    path = f"{BASE}/{entry['id']}"
    assert await chat(sandbox) == 200
    for active, status in [(False, 404), (True, 200), (False, 404)]:
        answer = await sandbox.admin.client.put(path, json={"is_active": active})
        assert (answer.status_code, answer.json()["is_active"]) == (200, active)
        assert await chat(sandbox) == status
    events = await platform.audit(sandbox, "model_config.updated")
    assert [event["details"] for event in events] == [{"is_active": active} for active in (False, True, False)]


async def test_an_update_is_partial_and_null_clears_a_field(sandbox: Tenant) -> None:
    entry = await add(sandbox, display_name="Echo", cost_per_input_token=0.000001, max_output_tokens=10)
    path = f"{BASE}/{entry['id']}"
    body = (await sandbox.admin.client.put(path, json={"cost_per_output_token": 0.000002})).json()
    assert body["updated_at"] > entry["updated_at"]
    assert entry["price_source"] == "administrator"
    assert body == {**entry, "cost_per_output_token": 0.000002, "updated_at": body["updated_at"]}
    nulls = {"display_name": None, "cost_per_input_token": None, "max_output_tokens": None, "is_active": None}
    body = (await sandbox.admin.client.put(path, json=nulls)).json()
    assert (body["display_name"], body["cost_per_input_token"], body["is_active"]) == (None, None, True)
    same = {"provider": "sandbox", "model_id": "echo"}
    assert (await sandbox.admin.client.put(path, json=same)).status_code == 200
    for field in ("provider", "model_id"):
        fixed = await sandbox.admin.client.put(path, json={field: "other"})
        assert (fixed.status_code, fixed.json()["detail"][0]["loc"]) == (422, ["body", field])


async def test_an_organization_has_one_default_model(sandbox: Tenant, platform: RunningPlatform) -> None:
    first = await add(sandbox, is_default=True)
    second = await add(sandbox, "tools", is_default=True)
    read = sandbox.admin.client.get
    assert (await read(f"{BASE}/{first['id']}")).json()["is_default"] is False
    paths = [f"{BASE}/{entry['id']}" for entry in (first, second)] * 3
    await asyncio.gather(*(sandbox.admin.client.put(path, json={"is_default": True}) for path in paths))
    query = "SELECT count(*) FROM model_configs WHERE tenant_id = %s AND is_default"
    assert platform.sql(query, [sandbox.id]) == [(1,)]
    assert await chat(sandbox, "auto") == 200


async def test_a_deleted_entry_cannot_be_chosen(platform: RunningPlatform, sandbox: Tenant) -> None:
    entry = await add(sandbox)
    off = f"/api/v1/admin/kill-switch/models/{entry['id']}/disable"
    await sandbox.admin.client.post(off, json={"reason": "other"})
    assert await chat(sandbox) == 503
    assert (await sandbox.admin.client.delete(f"{BASE}/{entry['id']}")).status_code == 204
    assert await chat(sandbox) == 404
    assert platform.host.replica.switched_off.isdisjoint({entry["id"]})
    assert (await sandbox.admin.client.delete(f"{BASE}/{entry['id']}")).status_code == 404
    (event,) = await platform.audit(sandbox, "model_config.deleted")
    assert (event["target_provider"], event["target_model"]) == ("sandbox", "echo")
    await add(sandbox)
    assert await chat(sandbox) == 200


async def test_a_bulk_change_ignores_unknown_ids(
    platform: RunningPlatform, sandbox: Tenant, other_tenant: Tenant
) -> None:
    entries = [await add(sandbox, name) for name in ("echo", "tools")]
    ids = [entry["id"] for entry in entries]
    body = {"model_ids": [*ids, str(uuid4()), ids[0]], "is_active": False}
    foreign = await other_tenant.admin.client.patch(f"{BASE}/bulk", json=body)
    assert (foreign.status_code, foreign.json()) == (200, [])
    answer = await sandbox.admin.client.patch(f"{BASE}/bulk", json=body)
    assert answer.status_code == 200
    assert {entry["id"]: entry["is_active"] for entry in answer.json()} == dict.fromkeys(ids, False)
    assert await chat(sandbox) == 404
    assert len(await platform.audit(sandbox, "model_config.bulk_updated")) == 1
    for bad in ({"model_ids": ["x"], "is_active": True}, {"model_ids": ids}, {"is_active": True}):
        assert (await sandbox.admin.client.patch(f"{BASE}/bulk", json=bad)).status_code == 422


async def connect(tenant: Tenant, fake: Any, slug: str) -> None:
    path = f"/api/admin/providers/{slug}/credentials"
    assert (await tenant.admin.client.put(path, json={"base_url": fake.url + "/v1"})).status_code == 200


async def test_discovery_queries_every_provider_and_stores_nothing(tenant: Tenant, fake_providers: Any) -> None:
    good, broken, off = [await fake_providers.start() for _ in range(3)]
    for slug, fake in (("good", good), ("broken", broken), ("off", off)):
        await connect(tenant, fake, slug)
    broken.mode = "garbage"
    await tenant.admin.client.put("/api/admin/providers/off/status", json={"enabled": False})
    good.models.append({"id": "two words"})
    await tenant.admin.client.post(BASE, json={"provider": "good", "model_id": "vendor/large"})
    answer = await tenant.auditor.client.get(f"{BASE}/discover")
    assert answer.status_code == 200
    unknown = dict.fromkeys(
        ("supports_vision", "max_tokens", "supports_streaming", "cost_per_input_token", "cost_per_output_token")
    )
    assert answer.json() == [
        {
            "provider": "good", "model_id": "small", "display_name": "small", "already_in_catalog": False,
            "context_window": 8_000, **unknown,
        },
        {
            "provider": "good", "model_id": "vendor/large", "display_name": "vendor/large",
            "already_in_catalog": True, "context_window": None, **unknown,
        },
    ]  # fmt: skip
    assert (len(broken.requests), len(off.requests)) == (1, 0)
    assert (await tenant.admin.client.get(BASE)).json()["total"] == 1


async def test_discovery_does_not_wait_for_hanging_providers(
    tenant: Tenant, fake_providers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Prober.list_models

    async def hurried(self: Prober, tenant_id: Any, provider: Any, timeout_ms: int) -> Any:
        assert timeout_ms == discovery.LIST_TIMEOUT_MS
        return await original(self, tenant_id, provider, 300)

    monkeypatch.setattr(Prober, "list_models", hurried)
    for slug, mode in (("one", "hang"), ("two", "drip"), ("three", "hang"), ("good", "good")):
        fake = await fake_providers.start()
        fake.mode = mode
        await connect(tenant, fake, slug)
    body = (await tenant.admin.client.get(f"{BASE}/discover")).json()
    assert {model["provider"] for model in body} == {"good"}


async def test_sync_adds_missing_models_once(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake, "mine")
    await tenant.admin.client.post(BASE, json={"provider": "mine", "model_id": "small", "is_active": False})
    first = await tenant.admin.client.post(f"{BASE}/sync")
    assert first.status_code == 200
    assert first.json() == {
        "added": 1, "skipped": 1, "added_models": [{"provider": "mine", "model_id": "vendor/large"}],
    }  # fmt: skip
    again = await tenant.admin.client.post(f"{BASE}/sync")
    assert again.json() == {"added": 0, "skipped": 2, "added_models": []}
    entries = {entry["model_id"]: entry for entry in (await tenant.admin.client.get(BASE)).json()["items"]}
    assert (entries["vendor/large"]["is_active"], entries["small"]["is_active"]) == (True, False)
    assert entries["vendor/large"]["cost_per_input_token"] is None
    assert await chat(tenant, "mine/vendor/large") == 200
    (event,) = await platform.audit(tenant, "model_config.synced")
    assert event["details"] == {"added": 1, "models": ["mine/vendor/large"]}


async def test_sync_in_variant_b_gives_the_new_entries(tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake, "mine")
    first = (await tenant.admin.client.post(f"{BASE}/sync", headers=B)).json()
    assert sorted(entry["model_id"] for entry in first) == ["small", "vendor/large"]
    assert all(entry["id"] and entry["is_active"] and entry["display_name"] for entry in first)
    assert (await tenant.admin.client.post(f"{BASE}/sync", headers=B)).json() == []


async def test_two_syncs_at_once_add_each_model_once(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    fake.models = [{"id": f"m{number}"} for number in range(1_500)]
    await connect(tenant, fake, "mine")
    both = await asyncio.gather(*(tenant.admin.client.post(f"{BASE}/sync") for _ in range(2)))
    assert sum(answer.json()["added"] for answer in both) == 1_500
    assert platform.sql("SELECT count(*) FROM model_configs WHERE tenant_id = %s", [tenant.id]) == [(1_500,)]


def test_a_providers_model_list_is_validated() -> None:
    strange = [
        ProviderModel(model_id=name, display_name="x\x00y") for name in ("", "a b", "a\x00", "x" * 256, "good", "good")
    ]
    (model,) = discovery._valid(strange)
    assert (model.model_id, discovery._display_name(model)) == ("good", "xy")
    started = time.monotonic()
    assert (
        len(discovery._valid(ProviderModel(model_id=str(number)) for number in range(1_000_000)))
        == discovery.MAX_MODELS_PER_PROVIDER
    )
    assert time.monotonic() - started < 5


CALLS = [
    ("GET", "/", None),
    ("POST", "/", {"provider": "sandbox", "model_id": "x"}),
    ("GET", "/{id}", None),
    ("PUT", "/{id}", {"is_active": True}),
    ("DELETE", "/{id}", None),
    ("GET", "/discover", None),
    ("POST", "/sync", None),
    ("PATCH", "/bulk", {"model_ids": [], "is_active": True}),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
async def test_only_permitted_roles_have_access(
    platform: RunningPlatform, sandbox: Tenant, other_tenant: Tenant, method: str, path: str, body: Any
) -> None:
    entry = await add(sandbox)
    path = BASE + path.replace("{id}", entry["id"])

    async def status(client: httpx2.AsyncClient) -> int:
        return (await client.request(method, path, json=body)).status_code

    reads = method == "GET"
    assert await status(platform.anonymous) == 401
    assert await status(sandbox.user.client) == 403
    assert await status(sandbox.auditor.client) == (200 if reads else 403)
    assert await status(await platform.new_m2m(sandbox.id, "admin:read")) == (200 if reads else 403)
    if entry["id"] in path:
        foreign = await other_tenant.admin.client.request(method, path, json=body)
        assert (foreign.status_code, foreign.json()) == (404, {"detail": "Model config not found"})
    assert (await sandbox.admin.client.get(BASE)).json()["total"] == 1
