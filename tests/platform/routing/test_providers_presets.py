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
from gatehouse.platform.routing.fields import ProviderQuirks
from gatehouse.platform.routing.providers.presets import PRESETS

PATH: Final = "/api/admin/provider-presets"
KEY: Final = "a-key-of-the-vendor"
HOSTED: Final = [name for name, preset in PRESETS.items() if preset.base_url.startswith("https://")]
LOCAL: Final = [name for name in PRESETS if name not in HOSTED]
HOSTS: Final = sorted({urlsplit(PRESETS[name].base_url).netloc for name in HOSTED})
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


async def check_answers(deployment: Deployment, name: str, base_url: str | None, server: Upstream) -> None:
    """Add the provider, check its health, discover its models, call one, and remove the provider."""
    client, path, preset = deployment.client, f"/api/admin/providers/{name}", PRESETS[name]
    credentials = {"preset": name}
    if base_url is not None:
        credentials["base_url"] = base_url
    if preset.key_required:
        credentials["api_key"] = KEY
    answer = await client.put(f"{path}/credentials", json=credentials)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True), answer.text
    provider = (await client.get(path)).json()
    assert (provider["name"], provider["kind"]) == (preset.name, preset.kind)
    assert provider["config"]["preset"] == name
    assert provider["config"].get("effective_quirks", {}) == preset.quirks.model_dump(exclude_none=True)
    assert (await client.post(f"{path}/health-check")).json()["health_check_status"] == "healthy"
    added = (await client.post("/api/admin/models/catalog/sync")).json()["added_models"]
    assert {"provider": name, "model_id": "m"} in added
    server.requests.clear()
    called = await client.post(
        "/v1/chat/completions", json={"model": f"{name}/m", "messages": [{"role": "user", "content": "ping"}]}
    )
    assert (called.status_code, called.headers["x-gateway-provider"]) == (200, name), called.text
    assert called.json()["choices"][0]["message"]["content"] == "pong"
    (request,) = server.requests
    parts = urlsplit(base_url or preset.base_url)
    assert request.head.startswith(f"POST {parts.path}/chat/completions HTTP/1.1\r\n")
    assert request.headers["host"] == parts.netloc
    assert request.headers.get("authorization") == (f"Bearer {KEY}" if preset.key_required else None)
    assert (await client.delete(path)).status_code == 204


@pytest.mark.parametrize("name", HOSTED)
async def test_a_hosted_service_answers_through_the_proxy(deployment: Deployment, name: str) -> None:
    deployment.proxy.heads.clear()
    await check_answers(deployment, name, None, deployment.vendors)
    assert {head.split(" ")[1] for head in deployment.proxy.heads} == {f"{urlsplit(PRESETS[name].base_url).netloc}:443"}


@pytest.mark.parametrize("name", LOCAL)
async def test_a_self_hosted_server_answers_at_its_address(deployment: Deployment, name: str) -> None:
    deployment.proxy.heads.clear()
    base_url = deployment.local.url + urlsplit(PRESETS[name].base_url).path
    await check_answers(deployment, name, base_url, deployment.local)
    assert deployment.proxy.heads == []


@pytest.mark.parametrize("name", PRESETS)
def test_an_entry_is_complete(name: str) -> None:
    assert name not in KINDS
    assert PRESETS[name].documentation_url is not None


@pytest.mark.parametrize("name", PRESETS)
def test_a_deployment_that_allows_the_open_internet_alone_allows_the_hosted_services(name: str) -> None:
    guard, preset = EgressGuard(policy="public"), PRESETS[name]
    if name in HOSTED:
        assert str(guard.provider_url(preset.base_url, "public")).rstrip("/") == preset.base_url
    else:
        with pytest.raises(BlockedAddress):
            guard.provider_url(preset.base_url, "public")


async def test_administrators_and_auditors_read_the_presets(platform: RunningPlatform, tenant: Tenant) -> None:
    for person in (tenant.admin, tenant.auditor):
        answer = await person.client.get(PATH)
        assert answer.status_code == 200
        presets = {preset["id"]: preset for preset in answer.json()["presets"]}
    assert list(presets) == list(PRESETS)
    assert presets["groq"] == {
        "id": "groq", "name": "Groq", "kind": "openai_compatible", "dialect": "openai", "source": "built_in",
        "quirks": {
            **dict.fromkeys(ProviderQuirks.model_fields),
            "removed_fields": ["logit_bias", "logprobs", "top_logprobs"], "message_names": False,
        },
        "base_url": "https://api.groq.com/openai/v1",
        "key_required": True, "documentation_url": "https://console.groq.com/docs/openai",
        "source_url": "https://console.groq.com/docs/openai", "recorded_on": "2026-11-30", "note": None,
    }  # fmt: skip
    assert (await tenant.user.client.get(PATH)).status_code == 403
    assert (await platform.anonymous.get(PATH)).status_code == 401
