"""Vertex AI, as an administrator configures it, called through the platform (docs/providers.md)."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Upstream, upstream
from tests.support.vendors.google_cloud import CLAUDE, CONFIG, KEY, GoogleCloud

from gatehouse.engine.providers import KINDS
from gatehouse.engine.providers.authentication.google import GoogleTokens

BASE = "/api/admin/providers"
CREDENTIALS = {"service_account_key": KEY, **CONFIG}
MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.fixture
def google() -> GoogleCloud:
    return GoogleCloud()


@pytest.fixture
async def server(google: GoogleCloud, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Upstream]:
    async with upstream(google) as server:
        monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens({}, token_url=f"{server.url}/token"))
        yield server


async def connect(platform: RunningPlatform, tenant: Tenant, url: str, *models: str) -> None:
    """Set the credentials of the provider, which is then called at `url`."""
    answer = await tenant.admin.client.put(f"{BASE}/vertex_ai/credentials", json=CREDENTIALS)
    assert answer.status_code == 200, answer.text
    platform.sql(
        "UPDATE providers SET config = config || %s WHERE tenant_id = %s AND id = 'vertex_ai'",
        [Jsonb({"base_url": url}), tenant.id],
    )
    platform.touch("policy", tenant.id)
    await platform.refresh()
    for model in models:
        body = {"provider": "vertex_ai", "model_id": model}
        assert (await tenant.admin.client.post("/api/admin/models/catalog", json=body)).status_code == 201


async def test_claude_streams_with_a_service_account(
    platform: RunningPlatform, tenant: Tenant, google: GoogleCloud, server: Upstream
) -> None:
    await connect(platform, tenant, server.url, CLAUDE)
    body: dict[str, Any] = {"model": f"vertex_ai/{CLAUDE}", "messages": MESSAGES, "max_tokens": 9, "stream": True}
    answer = await tenant.user.client.post("/v1/messages", json=body)
    assert answer.status_code == 200, answer.text
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta") == "Hi ä"
    assert events[0]["message"]["model"] == f"vertex_ai/{CLAUDE}"
    assert events[-1]["type"] == "message_stop"
    answer = await tenant.user.client.post("/v1/chat/completions", json=body)
    assert '"content":"Hi ä"' in answer.text
    assert google.faults == []
    assert len(google.tokens) == 1, "one token serves all calls"


async def test_the_key_is_sealed_and_the_settings_are_shown(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/vertex_ai/credentials", json=CREDENTIALS)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True)
    provider = (await tenant.admin.client.get(f"{BASE}/vertex_ai")).json()
    assert (provider["name"], provider["type"]) == ("Google Vertex AI", "cloudmanaged")
    assert provider["config"] == {"timeout_ms": 30_000, "max_retries": 2, **CONFIG}
    (event,) = await platform.audit(tenant, "provider.credentials_set")
    assert event["details"]["cloud_project"] == CONFIG["cloud_project"]
    rows = platform.sql("SELECT p::text FROM providers p WHERE tenant_id = %s", [tenant.id])
    for text in (answer.text, str(provider), str(event), str(rows)):
        assert "PRIVATE KEY" not in text
        assert KEY["private_key_id"] not in text


async def test_only_administrators_set_the_key_of_their_own_organization(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    path = f"{BASE}/vertex_ai/credentials"
    assert (await platform.client("gk_" + "0" * 40).put(path, json=CREDENTIALS)).status_code == 401
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.put(path, json=CREDENTIALS)).status_code == 403
    await tenant.admin.client.put(path, json=CREDENTIALS)
    other = await platform.new_tenant()
    assert (await other.admin.client.get(f"{BASE}/vertex_ai")).status_code == 404
    assert (await other.admin.client.delete(path)).status_code == 404


@pytest.mark.parametrize("kind", ["vertex_ai", "azure_openai"])
async def test_only_an_operator_uses_the_identity_of_the_machine(
    platform: RunningPlatform, tenant: Tenant, kind: str
) -> None:
    config = {"vertex_ai": CONFIG, "azure_openai": {"hosted_endpoint": "https://x.openai.azure.com"}}[kind]
    body = {"use_instance_role": True, **config}
    answer = await tenant.admin.client.put(f"{BASE}/{kind}/credentials", json=body)
    assert (answer.status_code, "operator" in answer.text) == (403, True)
    operator = await platform.new_person(tenant.id, "admin", operator=True)
    answer = await operator.client.put(f"{BASE}/{kind}/credentials", json=body)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True)
    # An administrator who sets credentials ends the use of the identity.
    own = {"vertex_ai": {"service_account_key": KEY}, "azure_openai": {"api_key": "k"}}[kind]
    await tenant.admin.client.put(f"{BASE}/{kind}/credentials", json={**own, **config})
    provider = (await tenant.admin.client.get(f"{BASE}/{kind}")).json()
    assert "use_instance_role" not in provider["config"]


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"cloud_project": None}, 400, "cloud_project"),
        ({"cloud_location": ""}, 400, "cloud_location"),
        ({"service_account_key": None}, 400, "service_account_key"),
        ({"cloud_project": "a/b"}, 422, "cloud_project"),
        ({"cloud_location": "x.evil.example/"}, 422, "cloud_location"),
        ({"service_account_key": {**KEY, "type": "external_account"}}, 422, "service_account_key"),
        ({"service_account_key": {**KEY, "private_key": "none"}}, 422, "service_account_key"),
        ({"service_account_key": 7}, 422, "service_account_key"),
        ({"token_uri": "http://169.254.169.254"}, 422, "token_uri"),
        ({"api_key": "k"}, 422, "api_key"),
    ],
)
async def test_bad_settings_name_the_field(
    platform: RunningPlatform, tenant: Tenant, change: dict[str, Any], status: int, field: str
) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/vertex_ai/credentials", json={**CREDENTIALS, **change})
    assert (answer.status_code, field in answer.text) == (status, True), answer.text
    assert "PRIVATE KEY" not in answer.text
    assert platform.sql("SELECT id FROM providers WHERE tenant_id = %s", [tenant.id]) == []


async def test_models_are_discovered_and_tried(
    platform: RunningPlatform, tenant: Tenant, google: GoogleCloud, server: Upstream
) -> None:
    google.models = {"google": ["gemini-x", "text-embedding-x"], "anthropic": ["claude-x"]}
    await connect(platform, tenant, server.url)
    admin = tenant.admin.client
    assert (await admin.post(f"{BASE}/vertex_ai/health-check")).json()["health_check_status"] == "healthy"
    assert (await admin.post("/api/admin/models/catalog/sync")).json()["added"] == 3
    tried = (await admin.post("/api/admin/system/check-provider/vertex_ai?model=claude-x")).json()
    assert tried["status"] == "reachable", tried
    body = {"model": "vertex_ai/text-embedding-x", "input": ["one", "three"]}
    embedded = (await tenant.user.client.post("/v1/embeddings", json=body)).json()
    assert [one["embedding"][0] for one in embedded["data"]] == [3, 5]
    body = {"model": "vertex_ai/claude-x", "messages": MESSAGES}
    counted = await tenant.user.client.post("/v1/messages/count_tokens", json=body)
    assert counted.json() == {"input_tokens": 21}


@pytest.mark.parametrize(("status", "reason"), [(400, "unauthorized"), (503, "no_access_token")])
async def test_a_failing_token_endpoint_leads_to_the_fallback(
    platform: RunningPlatform, tenant: Tenant, google: GoogleCloud, server: Upstream, status: int, reason: str
) -> None:
    google.token_status = status
    await connect(platform, tenant, server.url, CLAUDE)
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    body: dict[str, Any] = {"model": f"vertex_ai/{CLAUDE}", "messages": MESSAGES}
    answer = await tenant.user.client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 502
    assert [attempt["reason"] for attempt in answer.json()["error"]["attempts"]] == [reason]
    assert "words of the token endpoint" not in answer.text
    answer = await tenant.user.client.post("/v1/chat/completions", json={**body, "fallbacks": ["sandbox/echo"]})
    assert (answer.status_code, answer.headers["x-gateway-provider"]) == (200, "sandbox")
    checked = (await tenant.admin.client.post(f"{BASE}/vertex_ai/health-check")).json()
    assert checked["health_check_status"] == "unreachable"
    assert ("access token" if status == 503 else "refuses the credentials") in checked["error"]


async def test_bedrock_accepts_an_api_key_and_temporary_keys(platform: RunningPlatform, tenant: Tenant) -> None:
    admin, path = tenant.admin.client, f"{BASE}/bedrock/credentials"
    region = {"cloud_region": "eu-central-1"}
    key = await admin.put(path, json={"api_key": "ABSK-very-secret", **region})
    assert (key.status_code, key.json()["credentials_configured"]) == (200, True)
    assert (await admin.get(f"{BASE}/bedrock")).json()["config"] == {
        "timeout_ms": 30_000, "max_retries": 2, **region,
    }  # fmt: skip
    keys = {"cloud_access_key_id": "ASIAIOSFODNN7EXAMPLE", "cloud_secret_access_key": "s"}
    both = await admin.put(path, json={"api_key": "ABSK-very-secret", **keys, **region})
    assert (both.status_code, "api_key" in both.text) == (422, True)
    temporary = await admin.put(path, json={**keys, "cloud_session_token": "token", **region})
    assert (temporary.status_code, temporary.json()["credentials_configured"]) == (200, True)


async def test_azure_accepts_an_application_of_entra_id(platform: RunningPlatform, tenant: Tenant) -> None:
    application = {
        "entra_tenant_id": "11111111-2222-3333-4444-555555555555",
        "entra_client_id": "66666666-7777-8888-9999-000000000000",
    }
    endpoint = "https://x.openai.azure.com"
    body = {**application, "entra_client_secret": "abc8Q~very-secret", "hosted_endpoint": endpoint}
    answer = await tenant.admin.client.put(f"{BASE}/azure_openai/credentials", json=body)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True)
    provider = (await tenant.admin.client.get(f"{BASE}/azure_openai")).json()
    assert provider["config"].items() >= {**application, "hosted_endpoint": endpoint}.items()
    (event,) = await platform.audit(tenant, "provider.credentials_set")
    assert "abc8Q" not in f"{provider}{event}"
    # Another way of authentication replaces it.
    body = {"api_key": "k", "hosted_endpoint": endpoint}
    await tenant.admin.client.put(f"{BASE}/azure_openai/credentials", json=body)
    provider = (await tenant.admin.client.get(f"{BASE}/azure_openai")).json()
    assert "entra_client_id" not in provider["config"]
