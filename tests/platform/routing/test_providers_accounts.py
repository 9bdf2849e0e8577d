"""Several providers of one kind in an organization (docs/providers.md, Several accounts)."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from tests.support.journal import Journal
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream
from tests.support.vendors import azure_openai, bedrock, gemini

from gatehouse.platform.routing.providers import service

BASE = "/api/admin/providers"
CATALOG = "/api/admin/models/catalog/"
SWITCH = "/api/v1/admin/kill-switch/providers"
MESSAGES = [{"role": "user", "content": "hi"}]


async def add(tenant: Tenant, slug: str, **body: Any) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/{slug}/credentials", json=body)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True), answer.text


async def read(tenant: Tenant, name: str) -> dict[str, Any]:
    provider: dict[str, Any] = (await tenant.admin.client.get(f"{BASE}/{name}")).json()
    return provider


async def ask(tenant: Tenant, model: str, **more: Any) -> Any:
    body = {"model": model, "messages": MESSAGES, **more}
    return await tenant.user.client.post("/v1/chat/completions", json=body)


async def lead_to(platform: RunningPlatform, tenant: Tenant, name: str, url: str) -> None:
    platform.sql(
        "UPDATE providers SET config = config || %s WHERE tenant_id = %s AND id = %s",
        [Jsonb({"base_url": url}), tenant.id, name],
    )
    platform.touch("policy", tenant.id)
    await platform.refresh()


async def test_two_azure_resources_have_their_own_credentials_models_health_and_switches(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    admin = tenant.admin.client
    async with azure_openai.azure() as first, azure_openai.azure() as second:
        await add(tenant, "azure_openai", api_key=azure_openai.KEY, hosted_endpoint=first.url)
        credentials = {"api_key": azure_openai.KEY, "hosted_endpoint": second.url, "name": "Azure, Europe"}
        await add(tenant, "azure-eu", kind="azure_openai", **credentials)
        provider = await read(tenant, "azure-eu")
        assert (provider["id"], provider["name"], provider["kind"]) == ("azure-eu", "Azure, Europe", "azure_openai")
        assert provider["config"]["hosted_endpoint"] == second.url
        assert (await read(tenant, "azure_openai"))["config"]["hosted_endpoint"] == first.url
        created = [event["details"] for event in await platform.audit(tenant, "provider.created")]
        assert created == [{"kind": "azure_openai"}] * 2

        added = (await admin.post("/api/admin/models/catalog/sync")).json()["added_models"]
        assert sorted((model["provider"], model["model_id"]) for model in added) == [
            (name, model) for name in ("azure-eu", "azure_openai") for model in sorted(azure_openai.DEPLOYMENTS)
        ]
        for name, server in (("azure_openai", first), ("azure-eu", second)):
            server.requests.clear()
            answer = await ask(tenant, f"{name}/our-gpt")
            assert (answer.status_code, answer.headers["x-gateway-provider"]) == (200, name)
            assert len(server.requests) == 1

        # Each provider is checked with its own credentials, and is stopped and disabled independently of the other.
        await add(tenant, "azure-eu", **{**credentials, "api_key": "revoked"})
        checks = [(await admin.post(f"{BASE}/{name}/health-check")).json() for name in ("azure_openai", "azure-eu")]
        assert [check["health_check_status"] for check in checks] == ["healthy", "degraded"]
        fallen = await ask(tenant, "azure-eu/our-gpt", fallbacks=["azure_openai/our-gpt"])
        assert (fallen.status_code, fallen.headers["x-gateway-provider"]) == (200, "azure_openai")
        stopped = await admin.post(f"{SWITCH}/azure_openai/disable", json={"reason": "security_event"})
        assert stopped.status_code == 200
        assert (await ask(tenant, "azure_openai/our-gpt")).status_code == 503
        await add(tenant, "azure-eu", **credentials)
        assert (await ask(tenant, "azure-eu/our-gpt")).status_code == 200
        statuses = {item["id"]: item["status"] for item in (await admin.get(BASE)).json()["providers"]}
        assert statuses == {"azure-eu": "active", "azure_openai": "kill_switched"}


async def test_each_account_has_its_own_circuit(platform: RunningPlatform, tenant: Tenant) -> None:
    async with azure_openai.azure() as server:
        await add(tenant, "azure_openai", api_key=azure_openai.KEY, hosted_endpoint=server.url)
        # No server listens at this address.
        await add(tenant, "azure-us", kind="azure_openai", api_key="k", hosted_endpoint="http://127.0.0.1:9")
        for provider in ("azure_openai", "azure-us"):
            body = {"provider": provider, "model_id": "our-gpt"}
            assert (await tenant.admin.client.post(CATALOG, json=body)).status_code == 201
        await tenant.admin.client.patch(f"{BASE}/azure-us/config", json={"max_retries": 0})
        for _ in range(6):
            assert (await ask(tenant, "azure-us/our-gpt")).status_code == 502
        assert (await ask(tenant, "azure_openai/our-gpt")).status_code == 200
        assert set(platform.host.engine.circuits.open_of(tenant.id)) == {"azure-us"}


async def test_several_providers_of_one_kind_are_called_at_their_own_region_and_with_their_own_key(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    keys = {"cloud_access_key_id": bedrock.KEY_ID, "cloud_secret_access_key": bedrock.SECRET}
    regions = {f"bedrock-{region}": region for region in ("eu-central-1", "us-east-1", "ap-south-1")}
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(upstream(bedrock.Bedrock())) for name in regions}
        for name, region in regions.items():
            await add(tenant, name, kind="bedrock", **keys, cloud_region=region)
            assert (await read(tenant, name))["config"]["cloud_region"] == region
            await lead_to(platform, tenant, name, servers[name].url)
            await tenant.admin.client.post(CATALOG, json={"provider": name, "model_id": "m"})
            await ask(tenant, f"{name}/m")
            (request,) = servers[name].requests
            # The signature contains the region of the provider.
            assert f"/{region}/bedrock/aws4_request" in request.headers["authorization"]
        server = await stack.enter_async_context(upstream(gemini.Gemini()))
        for name, key in (("gemini", "another"), ("gemini-two", gemini.KEY)):
            await add(tenant, name, api_key=key, kind="gemini")
            await lead_to(platform, tenant, name, server.url)
            await tenant.admin.client.post(CATALOG, json={"provider": name, "model_id": "gemini-x"})
        assert (await ask(tenant, "gemini/gemini-x")).status_code == 502
        assert (await ask(tenant, "gemini-two/gemini-x")).status_code == 200


async def test_routing_policies_prices_and_records_are_separate_for_each_account(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    for name in ("ollama", "ollama-lab"):
        await add(tenant, name, kind="ollama", local_runtime_base_url=fake.url)
        prices = {"cost_per_input_token": "0.1" if name == "ollama" else "0.001", "cost_per_output_token": "0.01"}
        model = {"provider": name, "model_id": "small", **prices}
        assert (await tenant.admin.client.post(CATALOG, json=model)).status_code == 201
    policy = {"name": "cheapest", "strategy": "cost_optimized", "enabled": True}
    created = await tenant.admin.client.post("/api/admin/cost-routing/policies", json=policy)
    assert created.status_code == 201, created.text
    # A bare model name that both providers have is also routed to the cheaper provider.
    for model in ("auto", "small"):
        chosen = await ask(tenant, model, max_tokens=5)
        assert (chosen.status_code, chosen.headers["x-gateway-provider"]) == (200, "ollama-lab")
        assert float(chosen.headers["x-cost-usd"]) < 0.05
    await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()
    recorded = platform.sql("SELECT provider, model_id FROM usage_records WHERE tenant_id = %s", [tenant.id])
    assert recorded == [("ollama-lab", "small")] * 2


@pytest.mark.parametrize(
    ("name", "body", "status", "words"),
    [
        ("azure-eu", {"kind": "no-such-kind", "api_key": "k"}, 422, "kind"),
        ("azure-eu", {"kind": "byoe", "api_key": "k"}, 422, "kind"),
        ("no-such-kind", {"kind": "no-such-kind", "base_url": "http://127.0.0.1:9/v1"}, 422, "kind"),
        ("azure-eu", {"kind": 7, "api_key": "k"}, 422, "kind"),
        ("azure-eu", {"kind": "azure_openai", "api_key": "k"}, 400, "hosted_endpoint"),
        ("openai-eu", {"kind": "openai", "api_key": "k", "hosted_endpoint": "https://x"}, 422, "hosted_endpoint"),
        ("own", {"kind": "openai_compatible", "api_key": "k"}, 400, "base_url"),
        ("azure-eu", {"kind": "openai", "api_key": "k", "name": ""}, 422, "name"),
        ("anthropic", {"kind": "openai", "api_key": "k"}, 404, "not that of another kind"),
        ("azure_eu", {"kind": "openai", "api_key": "k"}, 404, "letters, digits and dashes"),
        ("config", {"kind": "openai", "api_key": "k"}, 404, "name"),
        ("byoe", {"kind": "openai", "api_key": "k"}, 404, "name"),
        ("abc%0A", {"kind": "openai", "api_key": "k"}, 404, "name"),
    ],
)
async def test_an_invalid_kind_or_name_is_refused(
    platform: RunningPlatform, tenant: Tenant, name: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/{name}/credentials", json=body)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert platform.sql("SELECT id FROM providers WHERE tenant_id = %s", [tenant.id]) == []


async def test_a_provider_keeps_its_kind_and_its_name(tenant: Tenant) -> None:
    await add(tenant, "mine", kind="openai", api_key="k", name="Ours")
    other = await tenant.admin.client.put(f"{BASE}/mine/credentials", json={"kind": "gemini", "api_key": "k"})
    assert (other.status_code, other.json()["detail"][0]["loc"]) == (422, ["body", "kind"])
    for body in ({"api_key": "new"}, {"api_key": "new", "kind": "openai"}):
        await add(tenant, "mine", **body)
        provider = await read(tenant, "mine")
        assert (provider["kind"], provider["name"]) == ("openai", "Ours")
    await add(tenant, "plain", kind="openai", api_key="k")
    assert (await read(tenant, "plain"))["name"] == "plain"


async def test_a_request_for_a_new_provider_never_replaces_credentials(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    new = {"If-None-Match": "*"}
    path = f"{BASE}/openai/credentials"
    assert (await tenant.admin.client.put(path, json={"api_key": "first"}, headers=new)).status_code == 200
    query = "SELECT sealed_credentials FROM providers WHERE tenant_id = %s"
    stored = platform.sql(query, [tenant.id])
    refused = await tenant.admin.client.put(path, json={"api_key": "second"}, headers=new)
    assert (refused.status_code, "exists" in refused.text) == (412, True), refused.text
    assert platform.sql(query, [tenant.id]) == stored
    assert len(await platform.audit(tenant, "provider.credentials_set")) == 1
    other = await tenant.admin.client.put(path, json={"api_key": "second"}, headers={"If-None-Match": '"1"'})
    assert (other.status_code, "if-none-match" in other.text.lower()) == (422, True), other.text
    assert (await tenant.admin.client.put(path, json={"api_key": "second"})).status_code == 200
    assert platform.sql(query, [tenant.id]) != stored


async def test_of_requests_for_a_new_provider_at_once_only_one_succeeds(tenant: Tenant) -> None:
    answers = await asyncio.gather(
        *(
            tenant.admin.client.put(
                f"{BASE}/mine/credentials", json={"kind": "openai", "api_key": key}, headers={"If-None-Match": "*"}
            )
            for key in ("a", "b", "c")
        )
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412]


@pytest.mark.parametrize(("existing", "name"), [("mine", "azure-openai"), ("mine", "OpenAI"), ("my-own", "My-Own")])
async def test_an_id_with_the_environment_variables_of_another_is_refused(
    platform: RunningPlatform, tenant: Tenant, existing: str, name: str
) -> None:
    await add(tenant, existing, kind="openai", api_key="k")
    answer = await tenant.admin.client.put(f"{BASE}/{name}/credentials", json={"kind": "openai", "api_key": "k"})
    assert (answer.status_code, "environment variables" in answer.text) == (409, True), answer.text
    model = {
        "model_id": "m", "display_name": "M", "context_window": 1000, "input_cost_per_1k": 0, "output_cost_per_1k": 0,
    }  # fmt: skip
    endpoint = {"id": name, "name": "Own", "base_url": "http://127.0.0.1:9/v1", "format": "openai", "models": [model]}
    answer = await tenant.admin.client.post(f"{BASE}/byoe", json=endpoint)
    assert (answer.status_code, "environment variables" in answer.text) == (409, True), answer.text
    assert platform.sql("SELECT id FROM providers WHERE tenant_id = %s", [tenant.id]) == [(existing,)]


async def test_the_number_of_providers_is_limited(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_PROVIDERS", 1)
    await add(tenant, "mine", kind="openai", api_key="k")
    answer = await tenant.admin.client.put(f"{BASE}/other/credentials", json={"kind": "openai", "api_key": "k"})
    assert (answer.status_code, "maximum number of providers" in answer.text) == (409, True), answer.text
    await add(tenant, "mine", api_key="another")


async def test_a_changed_name_is_in_the_audit_log(platform: RunningPlatform, tenant: Tenant) -> None:
    for name in ("Ours", "Ours", "Theirs"):
        await add(tenant, "mine", kind="openai", api_key="k", name=name)
    details = [event["details"] for event in await platform.audit(tenant, "provider.credentials_set")]
    assert sorted(str(detail.get("name")) for detail in details) == ["None", "Ours", "Theirs"]


async def test_the_role_of_the_machine_is_for_operators_under_every_name(tenant: Tenant) -> None:
    body = {"kind": "bedrock", "use_instance_role": True, "cloud_region": "eu-central-1"}
    answer = await tenant.admin.client.put(f"{BASE}/bedrock-eu/credentials", json=body)
    assert answer.status_code == 403


async def test_a_provider_of_any_kind_is_removed_with_its_credentials(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    async with azure_openai.azure() as server:
        credentials = {"kind": "azure_openai", "api_key": azure_openai.KEY, "hosted_endpoint": server.url}
        for owner in (tenant, other_tenant):
            await add(owner, "azure-eu", **credentials)
            await owner.admin.client.post("/api/admin/models/catalog/sync")
        await add(tenant, "azure_openai", **credentials)
        assert (await tenant.user.client.delete(f"{BASE}/azure-eu")).status_code == 403
        assert (await tenant.auditor.client.delete(f"{BASE}/azure-eu")).status_code == 403
        for name in ("azure-eu", "azure_openai"):
            assert (await tenant.admin.client.delete(f"{BASE}/{name}")).status_code == 204
            assert (await tenant.admin.client.get(f"{BASE}/{name}")).status_code == 404
            assert (await tenant.admin.client.delete(f"{BASE}/{name}")).status_code == 404
        assert platform.sql("SELECT id FROM providers WHERE tenant_id = %s", [tenant.id]) == []
        models = (await tenant.admin.client.get(CATALOG)).json()["items"]
        assert {(model["provider"], model["is_active"]) for model in models} == {("azure-eu", False)}
        assert (await ask(tenant, "azure-eu/our-gpt")).status_code == 404
        deleted = [
            (event["resource_id"], event["details"]) for event in await platform.audit(tenant, "provider.deleted")
        ]
        assert deleted == [("azure-eu", {"kind": "azure_openai"}), ("azure_openai", {"kind": "azure_openai"})]
        # The provider with the same name in another organization still works.
        assert (await ask(other_tenant, "azure-eu/our-gpt")).status_code == 200


async def test_a_new_provider_of_a_removed_ones_name_stays_stopped_by_its_kill_switch(tenant: Tenant) -> None:
    admin = tenant.admin.client
    await add(tenant, "mine", kind="openai", api_key="k")
    assert (await admin.post(f"{SWITCH}/mine/disable", json={"reason": "security_event"})).status_code == 200
    assert (await admin.delete(f"{BASE}/mine")).status_code == 204
    await add(tenant, "mine", kind="gemini", api_key="k")
    assert (await read(tenant, "mine"))["status"] == "kill_switched"
    assert (await admin.post(f"{SWITCH}/mine/enable")).status_code == 200
    assert (await read(tenant, "mine"))["status"] == "active"
