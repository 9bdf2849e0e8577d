"""Amazon Bedrock and Google Gemini, as administrators configure them: the credentials of the cloud-managed type
(docs/providers.md)."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream
from tests.support.vendors import bedrock, gemini

from gatehouse.engine.providers import KINDS
from gatehouse.engine.providers.bedrock.machine import Machine

BASE = "/api/admin/providers"
KEYS = {
    "cloud_access_key_id": bedrock.KEY_ID,
    "cloud_secret_access_key": bedrock.SECRET,
    "cloud_region": bedrock.REGION,
}
ROLE = {"use_instance_role": True, "cloud_region": bedrock.REGION}
MASKED = "AKIA...MPLE"
MESSAGES = [{"role": "user", "content": "hi"}]


async def shown(tenant: Tenant, slug: str) -> dict[str, Any]:
    provider: dict[str, Any] = (await tenant.admin.client.get(f"{BASE}/{slug}")).json()
    return provider


async def lead_to(platform: RunningPlatform, tenant: Tenant, slug: str, url: str) -> None:
    platform.sql(
        "UPDATE providers SET config = config || %s WHERE tenant_id = %s AND id = %s",
        [Jsonb({"base_url": url}), tenant.id, slug],
    )
    platform.touch("policy", tenant.id)
    await platform.refresh()


async def test_keys_of_the_cloud_are_kept_apart_and_shown_masked(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/bedrock/credentials", json=KEYS)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True)
    provider = await shown(tenant, "bedrock")
    assert (provider["name"], provider["type"]) == ("Amazon Bedrock", "cloudmanaged")
    assert provider["config"] == {
        "timeout_ms": 30_000,
        "max_retries": 2,
        "cloud_region": bedrock.REGION,
        "cloud_access_key_id": MASKED,
    }
    (event,) = await platform.audit(tenant, "provider.credentials_set")
    assert event["details"]["cloud_access_key_id"] == MASKED
    assert bedrock.KEY_ID not in str(event)
    rows = platform.sql("SELECT p::text FROM providers p WHERE tenant_id = %s", [tenant.id])
    assert bedrock.SECRET not in str(rows)


async def test_an_operator_grants_and_revokes_the_use_of_the_machines_role(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    operator = await platform.new_person(tenant.id, "admin", operator=True)
    await tenant.admin.client.put(f"{BASE}/bedrock/credentials", json=KEYS)
    answer = await operator.client.put(f"{BASE}/bedrock/credentials", json=ROLE)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True)
    config = (await shown(tenant, "bedrock"))["config"]
    assert config["use_instance_role"] is True
    assert "cloud_access_key_id" not in config
    assert platform.sql("SELECT sealed_credentials FROM providers WHERE tenant_id = %s", [tenant.id]) == [(None,)]
    await tenant.admin.client.put(f"{BASE}/bedrock/credentials", json=KEYS)
    provider = await shown(tenant, "bedrock")
    assert provider["credentials_configured"] is True
    assert "use_instance_role" not in provider["config"]
    assert provider["config"]["cloud_access_key_id"] == MASKED


async def test_an_organization_cannot_grant_itself_the_machines_role(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/bedrock/credentials", json=ROLE)
    assert answer.status_code == 403
    assert "operator" in answer.text
    assert platform.sql("SELECT id FROM providers WHERE tenant_id = %s", [tenant.id]) == []


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"cloud_region": None}, 400, "cloud_region"),
        ({"cloud_secret_access_key": None}, 400, "cloud_secret_access_key"),
        ({"use_instance_role": False, "cloud_access_key_id": ""}, 400, "cloud_access_key_id"),
        ({"cloud_region": "eu-central-1.evil.example#"}, 422, "cloud_region"),
        ({"cloud_access_key_id": "short"}, 422, "cloud_access_key_id"),
        ({"use_instance_role": "true"}, 422, "use_instance_role"),
        ({"use_instance_role": True}, 422, "cloud_access_key_id"),
        ({"api_key": "x"}, 422, "api_key"),
    ],
)
async def test_bad_keys_of_the_cloud_name_the_field(
    platform: RunningPlatform, tenant: Tenant, change: dict[str, Any], status: int, field: str
) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/bedrock/credentials", json={**KEYS, **change})
    assert (answer.status_code, field in answer.text) == (status, True), answer.text
    assert bedrock.SECRET not in answer.text
    assert platform.sql("SELECT id FROM providers WHERE tenant_id = %s", [tenant.id]) == []


async def test_bedrock_answers_after_its_credentials_are_set(platform: RunningPlatform, tenant: Tenant) -> None:
    model = {
        "modelArn": "arn:aws:bedrock:eu-central-1::foundation-model/anthropic.claude-x-v1:0",
        "modelId": "anthropic.claude-x-v1:0",
        "modelName": "Claude X",
        "inputModalities": ["TEXT", "IMAGE"],
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "inferenceTypesSupported": ["ON_DEMAND"],
    }
    async with upstream(bedrock.Bedrock(models=[model])) as server:
        await tenant.admin.client.put(f"{BASE}/bedrock/credentials", json=KEYS)
        await lead_to(platform, tenant, "bedrock", server.url)
        checked = (await tenant.admin.client.post(f"{BASE}/bedrock/health-check")).json()
        assert (checked["health_check_status"], checked["error"]) == ("healthy", None)
        added = (await tenant.admin.client.post("/api/admin/models/catalog/sync")).json()
        assert added["added_models"] == [{"provider": "bedrock", "model_id": "anthropic.claude-x-v1:0"}]
        tried = (await tenant.admin.client.post("/api/admin/system/check-provider/bedrock")).json()
        assert tried["status"] == "reachable", tried
        body = {"model": "bedrock/anthropic.claude-x-v1:0", "messages": MESSAGES}
        answer = await tenant.user.client.post("/v1/chat/completions", json=body)
        assert answer.json()["choices"][0]["message"]["content"] == "Hi ä"
        assert answer.headers["x-gateway-provider"] == "bedrock"
        body = {"model": "bedrock/anthropic.claude-x-v1:0", "messages": MESSAGES, "max_tokens": 9, "stream": True}
        streamed = await tenant.user.client.post("/v1/messages", json=body)
        assert "message_stop" in streamed.text
        # The vendor refuses other keys, and the result of the check says so.
        await tenant.admin.client.put(
            f"{BASE}/bedrock/credentials", json={**KEYS, "cloud_secret_access_key": "another"}
        )
        checked = (await tenant.admin.client.post(f"{BASE}/bedrock/health-check")).json()
        assert checked["error"] == "The provider refuses the credentials."


async def test_gemini_answers_after_its_credentials_are_set(platform: RunningPlatform, tenant: Tenant) -> None:
    models = [
        {"name": "models/gemini-x", "displayName": "X", "supportedGenerationMethods": ["generateContent"]},
        {"name": "models/embed-x", "supportedGenerationMethods": ["embedContent"]},
    ]
    async with upstream(gemini.Gemini(models=models)) as server:
        await tenant.admin.client.put(f"{BASE}/gemini/credentials", json={"api_key": gemini.KEY})
        await lead_to(platform, tenant, "gemini", server.url)
        checked = (await tenant.admin.client.post(f"{BASE}/gemini/health-check")).json()
        assert checked["health_check_status"] == "healthy"
        added = (await tenant.admin.client.post("/api/admin/models/catalog/sync")).json()
        assert added["added"] == 2
        body = {"model": "gemini/gemini-x", "messages": MESSAGES}
        answer = await tenant.user.client.post("/v1/chat/completions", json=body)
        assert answer.json()["choices"][0]["message"]["content"] == "Hi ä"
        embedded = await tenant.user.client.post("/v1/embeddings", json={"model": "gemini/embed-x", "input": "hi"})
        assert len(embedded.json()["data"]) == 1
        await tenant.admin.client.put(f"{BASE}/gemini/credentials", json={"api_key": "another"})
        checked = (await tenant.admin.client.post(f"{BASE}/gemini/health-check")).json()
        assert checked["error"] == "The provider refuses the credentials."


async def test_the_probe_reports_a_machine_without_a_role(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KINDS["bedrock"], "_machine", Machine({"AWS_EC2_METADATA_DISABLED": "true"}))
    operator = await platform.new_person(tenant.id, "admin", operator=True)
    await operator.client.put(f"{BASE}/bedrock/credentials", json=ROLE)
    checked = (await tenant.admin.client.post(f"{BASE}/bedrock/health-check")).json()
    assert checked["health_check_status"] == "unreachable"
    assert "no role" in checked["error"]
