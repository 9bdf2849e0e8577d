"""Presets of providers (docs/providers.md). Each preset creates a provider that answers, at the preset's address and
through the proxy for calls to providers."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import certificate, serving
from tests.support.server import GatehouseServer
from tests.support.tunnels import Tunnels, tunnels
from tests.support.upstream import Connection, Upstream, upstream

from gatehouse.engine.providers import KINDS
from gatehouse.foundation.egress.guard import BlockedAddress, EgressGuard
from gatehouse.platform.routing.providers.presets import PRESETS, Preset

PATH: Final = "/api/admin/provider-presets"
KEY: Final = "a-key-of-the-vendor"
HOSTED: Final = [preset for preset in PRESETS if preset.base_url.startswith("https://")]
LOCAL: Final = [preset for preset in PRESETS if preset not in HOSTED]
HOSTS: Final = sorted({urlsplit(preset.base_url).netloc for preset in HOSTED})
COMPLETION: Final = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "pong"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}  # fmt: skip


async def vendor(connection: Connection) -> None:
    """Answer like any vendor, below any base URL."""
    path = connection.head.split(" ")[1]
    body = {"data": [{"id": "m"}]} if path.endswith("/models") else COMPLETION
    await connection.answer(json.dumps(body).encode())


@dataclass
class Deployment:
    client: httpx2.AsyncClient
    #: all hosts of presets, reached by the proxy
    vendors: Upstream
    proxy: Tunnels
    #: a server on this machine
    local: Upstream


@pytest.fixture(scope="module")
async def deployment() -> AsyncIterator[Deployment]:
    async with (
        upstream(vendor, tls=serving(*HOSTS)) as vendors,
        upstream(vendor) as local,
        tunnels(vendors.url) as (proxy_url, proxy),
    ):
        env = {"HTTPS_PROXY": proxy_url, "SSL_CERT_FILE": str(certificate(*HOSTS))}
        with GatehouseServer(env=env) as server:
            headers = {"Authorization": f"Bearer {server.key}"}
            async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
                server.settled()
                yield Deployment(client, vendors, proxy, local)


async def check_answers(deployment: Deployment, preset: Preset, base_url: str, server: Upstream) -> None:
    """Add the provider, check its health, discover its models, call one, and remove the provider."""
    client, path = deployment.client, f"/api/admin/providers/{preset.id}"
    credentials = {"kind": preset.kind, "name": preset.name, "base_url": base_url}
    if preset.key_required:
        credentials["api_key"] = KEY
    answer = await client.put(f"{path}/credentials", json=credentials)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True), answer.text
    provider = (await client.get(path)).json()
    assert (provider["name"], provider["kind"]) == (preset.name, preset.kind)
    assert (await client.post(f"{path}/health-check")).json()["health_check_status"] == "healthy"
    added = (await client.post("/api/admin/models/catalog/sync")).json()["added_models"]
    assert {"provider": preset.id, "model_id": "m"} in added
    server.requests.clear()
    called = await client.post(
        "/v1/chat/completions", json={"model": f"{preset.id}/m", "messages": [{"role": "user", "content": "ping"}]}
    )
    assert (called.status_code, called.headers["x-gateway-provider"]) == (200, preset.id), called.text
    assert called.json()["choices"][0]["message"]["content"] == "pong"
    (request,) = server.requests
    parts = urlsplit(base_url)
    assert request.head.startswith(f"POST {parts.path}/chat/completions HTTP/1.1\r\n")
    assert request.headers["host"] == parts.netloc
    assert request.headers.get("authorization") == (f"Bearer {KEY}" if preset.key_required else None)
    assert (await client.delete(path)).status_code == 204


@pytest.mark.parametrize("preset", HOSTED, ids=lambda preset: preset.id)
async def test_a_hosted_service_answers_through_the_proxy(deployment: Deployment, preset: Preset) -> None:
    deployment.proxy.heads.clear()
    await check_answers(deployment, preset, preset.base_url, deployment.vendors)
    assert {head.split(" ")[1] for head in deployment.proxy.heads} == {f"{urlsplit(preset.base_url).netloc}:443"}


@pytest.mark.parametrize("preset", LOCAL, ids=lambda preset: preset.id)
async def test_a_self_hosted_server_answers_at_its_address(deployment: Deployment, preset: Preset) -> None:
    deployment.proxy.heads.clear()
    base_url = deployment.local.url + urlsplit(preset.base_url).path
    await check_answers(deployment, preset, base_url, deployment.local)
    assert deployment.proxy.heads == []


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_an_entry_is_complete(preset: Preset) -> None:
    assert preset.kind in KINDS.keys() - {"byoe", "sandbox"}
    assert preset.id not in KINDS
    assert {field.name for field in KINDS[preset.kind].credential_fields} == {"api_key", "base_url"}
    assert preset.documentation_url.startswith("https://")
    assert preset.source_url.startswith("https://")
    assert not preset.base_url.endswith("/")


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_a_deployment_that_allows_the_open_internet_alone_allows_the_hosted_services(preset: Preset) -> None:
    guard = EgressGuard(policy="public")
    if preset in HOSTED:
        assert str(guard.provider_url(preset.base_url, "public")).rstrip("/") == preset.base_url
    else:
        with pytest.raises(BlockedAddress):
            guard.provider_url(preset.base_url, "public")


async def test_administrators_and_auditors_read_the_presets(platform: RunningPlatform, tenant: Tenant) -> None:
    for person in (tenant.admin, tenant.auditor):
        answer = await person.client.get(PATH)
        assert answer.status_code == 200
        presets = {preset["id"]: preset for preset in answer.json()["presets"]}
    assert list(presets) == [preset.id for preset in PRESETS]
    assert presets["groq"] == {
        "id": "groq", "name": "Groq", "kind": "openai_compatible", "base_url": "https://api.groq.com/openai/v1",
        "key_required": True, "documentation_url": "https://console.groq.com/docs/openai",
        "source_url": "https://console.groq.com/docs/openai", "recorded_on": "2026-11-29", "note": None,
    }  # fmt: skip
    assert (await tenant.user.client.get(PATH)).status_code == 403
    assert (await platform.anonymous.get(PATH)).status_code == 401
