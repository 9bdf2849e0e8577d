"""Azure OpenAI and Mistral, as administrators configure and callers use them (docs/providers.md)."""

from typing import Any

from psycopg.types.json import Jsonb
from tests.support.platform import RunningPlatform, Tenant
from tests.support.vendors import azure_openai, mistral

BASE = "/api/admin/providers"


async def post_as_user(tenant: Tenant, path: str, **body: Any) -> Any:
    return await tenant.user.client.post(path, json=body)


async def test_azure_answers_after_its_credentials_are_set(platform: RunningPlatform, tenant: Tenant) -> None:
    admin = tenant.admin.client
    async with azure_openai.azure() as server:
        credentials = {"api_key": azure_openai.KEY, "hosted_endpoint": server.url + "/"}
        response = await admin.put(f"{BASE}/azure_openai/credentials", json=credentials)
        assert (response.status_code, response.json()["credentials_configured"]) == (200, True)
        provider = (await admin.get(f"{BASE}/azure_openai")).json()
        assert (provider["name"], provider["type"]) == ("Azure OpenAI", "native")
        assert provider["config"] == {
            "timeout_ms": 30_000,
            "max_retries": 2,
            "hosted_endpoint": server.url,
            "hosted_api_version": "2024-02-01",
        }
        checked = (await admin.post(f"{BASE}/azure_openai/health-check")).json()
        assert checked["health_check_status"] == "healthy"
        synced = (await admin.post("/api/admin/models/catalog/sync")).json()
        assert {model["model_id"] for model in synced["added_models"]} == set(azure_openai.DEPLOYMENTS)
        tried = (await admin.post("/api/admin/system/check-provider/azure_openai")).json()
        assert tried["status"] == "reachable"
        messages_body = {"messages": [{"role": "user", "content": "hi"}]}
        answer = await post_as_user(tenant, "/v1/chat/completions", model="azure_openai/our-gpt", **messages_body)
        assert (answer.status_code, answer.headers["x-gateway-model"]) == (200, "our-gpt")
        filtered = {"messages": [{"role": "user", "content": "filter this prompt"}]}
        refused = await post_as_user(
            tenant, "/v1/messages", model="azure_openai/our-gpt", max_tokens=5, fallbacks=["mine/m"], **filtered
        )
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["code"], error["filters"]) == ("content_filter", ["hate", "jailbreak"])
    assert "modify your prompt" not in refused.text


async def test_missing_or_wrong_azure_credentials_are_named(tenant: Tenant) -> None:
    admin = tenant.admin.client
    missing = await admin.put(f"{BASE}/azure_openai/credentials", json={"api_key": "k"})
    assert missing.status_code == 400
    assert "hosted_endpoint" in missing.text
    endpoint = "https://x.openai.azure.com"
    for field, value in (
        ("hosted_api_version", "v1?x=y"),
        ("hosted_endpoint", "http://169.254.169.254"),
        ("hosted_endpoint", "ftp://x"),
    ):
        wrong = await admin.put(
            f"{BASE}/azure_openai/credentials", json={"api_key": "k", "hosted_endpoint": endpoint, field: value}
        )
        assert wrong.status_code == 422
        assert field in wrong.text


async def test_mistral_answers_after_its_credentials_are_set(platform: RunningPlatform, tenant: Tenant) -> None:
    admin = tenant.admin.client
    async with mistral.mistral() as server:
        response = await admin.put(f"{BASE}/mistral/credentials", json={"api_key": mistral.KEY})
        assert response.status_code == 200
        platform.sql(
            "UPDATE providers SET config = config || %s WHERE tenant_id = %s AND id = 'mistral'",
            [Jsonb({"base_url": f"{server.url}/v1"}), tenant.id],
        )
        platform.touch("policy", tenant.id)
        await platform.refresh()
        assert (await admin.post(f"{BASE}/mistral/health-check")).json()["health_check_status"] == "healthy"
        await admin.post("/api/admin/models/catalog/sync")
        answer = await post_as_user(tenant, "/v1/responses", model="mistral/mistral-large-latest", input="hi")
        assert answer.status_code == 200, answer.text
        assert answer.json()["output"][0]["content"][0]["text"] == "Bonjour à tous"
        vectors = await post_as_user(tenant, "/v1/embeddings", model="mistral/mistral-embed", input="hi")
        assert len(vectors.json()["data"]) == 1
