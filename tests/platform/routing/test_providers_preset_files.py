"""Presets, quirks and models from files of `gatehouse prices update -f`, which running workers and outposts use without
a restart (docs/providers.md)."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from tests.cli.tenants.test_prices import Shell
from tests.support.outpost_server import OutpostServer, Trust
from tests.support.platform import RunningPlatform, Tenant
from tests.support.server import GatehouseServer
from tests.support.upstream import Connection, Upstream, upstream

KEY: Final = "a-key-of-ours"
PROVIDERS: Final = "/api/admin/providers"
FILE: Final = """
version = 1

[presets.in-house]
name = "Our models"
dialect = "openai"
base_url = "{url}/v1"
key_required = true
quirks = {quirks}
source_url = "https://intranet.example/models"
recorded_on = 2026-11-30

[in-house.small]
context_window = 8_000
capabilities = {{ vision = false }}
usd_per_million_tokens = {{ input = {price}, output = 8 }}
source_url = "https://intranet.example/models"
recorded_on = 2026-11-30
"""
CLAUDE_LIKE: Final = """
[presets.messages]
name = "Our messages"
dialect = "anthropic"
base_url = "{url}"
key_required = false
quirks = {{ key_header = "authorization" }}
source_url = "https://intranet.example/models"
recorded_on = 2026-11-30
"""
MESSAGES_PRESET: Final = {
    "name": "Our messages", "dialect": "anthropic", "base_url": "http://127.0.0.1:9", "key_required": False,
    "quirks": {"key_header": "authorization"}, "source_url": "https://intranet.example/models",
    "recorded_on": "2026-11-30",
}  # fmt: skip
MODEL: Final = """
[openai.{model}]
context_window = {window}
source_url = "https://vendor.example/models"
recorded_on = 2026-11-30
"""
COMPLETION: Final = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "small",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "pong"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}  # fmt: skip
MESSAGE: Final = {
    "id": "m1", "type": "message", "role": "assistant", "model": "small", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "pong"}], "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip
CHAT: Final = {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "ping"}]}


async def vendor(connection: Connection) -> None:
    path = connection.head.split(" ")[1]
    if path.split("?")[0].endswith("/models"):
        await connection.answer(json.dumps({"data": [{"id": "small"}]}).encode())
    else:
        await connection.answer(json.dumps(MESSAGE if path.endswith("/messages") else COMPLETION).encode())


@dataclass
class Deployment:
    server: GatehouseServer
    client: httpx2.AsyncClient
    vendor: Upstream
    folder: Path

    async def update(self, content: str, *words: str, status: int = 0) -> str:
        """Run `gatehouse prices update -f` in another process. Return its output."""
        path = self.folder / "vendors.toml"
        path.write_text(content)
        return await self.run("update", "-f", str(path), *words, status=status)

    async def run(self, *words: str, status: int = 0) -> str:
        """Run a command of `gatehouse prices` in another process. Return its output."""
        command = [sys.executable, "-P", "-m", "gatehouse", "prices", *words]
        env, home = self.server.env, self.server.home
        done = await asyncio.to_thread(subprocess.run, command, env=env, cwd=home, capture_output=True, check=False)
        assert done.returncode == status, done.stderr.decode()
        return (done.stdout if status == 0 else done.stderr).decode()

    async def ask(self, model: str = "in-house/small", **fields: Any) -> tuple[Connection, dict[str, Any]]:
        """Make a call. Return the request that the vendor received, and its body."""
        self.vendor.requests.clear()
        answer = await self.client.post("/v1/chat/completions", json={"model": model, **CHAT, **fields})
        assert answer.status_code == 200, answer.text
        (request,) = self.vendor.requests
        return request, json.loads(request.body)


def ask_outpost(outpost: OutpostServer, **fields: Any) -> httpx2.Response:
    with outpost.client() as client:
        return client.post("/v1/chat/completions", json={"model": "in-house/small", **CHAT, **fields})


@pytest.fixture(scope="module")
async def deployment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    async with upstream(vendor) as ours:
        with GatehouseServer(workers=2) as server:
            headers = {"Authorization": f"Bearer {server.key}"}
            async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
                server.settled()
                yield Deployment(server, client, ours, tmp_path_factory.mktemp("files"))


def content(deployment: Deployment, quirks: str, *, price: int = 2) -> str:
    return FILE.format(url=deployment.vendor.url, quirks=quirks, price=price)


async def test_a_file_adds_a_preset_whose_quirks_and_models_running_workers_and_outposts_use(
    deployment: Deployment,
) -> None:
    client = deployment.client
    first = content(deployment, '{ developer_role = false, key_header = "api-key" }')
    assert "in-house  added" in await deployment.update(first, "--dry-run")
    assert "in-house" not in {one["id"] for one in (await client.get("/api/admin/provider-presets")).json()["presets"]}
    await deployment.update(first)
    presets = {one["id"]: one for one in (await client.get("/api/admin/provider-presets")).json()["presets"]}
    assert (presets["in-house"]["source"], presets["in-house"]["base_url"]) == ("file", f"{deployment.vendor.url}/v1")
    assert presets["in-house"]["quirks"]["developer_role"] is False

    path = f"{PROVIDERS}/in-house"
    added = await client.put(f"{path}/credentials", json={"preset": "in-house", "api_key": KEY})
    assert added.status_code == 200, added.text
    provider = (await client.get(path)).json()
    assert (provider["name"], provider["kind"]) == ("Our models", "openai_compatible")
    assert "quirks" not in provider["config"]
    assert (await client.post(f"{path}/health-check")).json()["health_check_status"] == "healthy"
    assert (await client.post("/api/admin/models/catalog/sync")).status_code == 200
    (model,) = (await client.get("/api/admin/models/catalog/?provider=in-house")).json()["items"]
    assert (model["context_window"], model["cost_per_input_token"], model["price_source"]) == (
        8_000, 0.000002, "price_file",
    )  # fmt: skip
    assert (model["capabilities"]["vision"], model["capabilities"]["reasoning"]) == (False, None)

    request, body = await deployment.ask(max_tokens=9)
    assert (request.headers.get("api-key"), request.headers.get("authorization")) == (KEY, None)
    assert (body["messages"][0]["role"], body["max_tokens"]) == ("system", 9)

    trust = Trust(deployment.server)
    with OutpostServer(trust) as outpost:
        deployment.vendor.requests.clear()
        answer = await asyncio.to_thread(ask_outpost, outpost)
        assert answer.status_code == 200, answer.text
        assert json.loads(deployment.vendor.requests[-1].body)["messages"][0]["role"] == "system"

        second = content(deployment, '{ limit_field = "max_completion_tokens", removed_fields = ["seed"] }', price=3)
        assert "in-house  replaced" in await deployment.update(second)
        # Each worker receives some of these requests.
        for _ in range(8):
            request, body = await deployment.ask(max_tokens=9, seed=1)
            assert request.headers["authorization"] == f"Bearer {KEY}"
            assert (body["messages"][0]["role"], body["max_completion_tokens"]) == ("developer", 9)
            assert not {"seed", "max_tokens"} & body.keys()
        deadline = time.monotonic() + 20
        while True:
            deployment.vendor.requests.clear()
            answer = await asyncio.to_thread(ask_outpost, outpost, seed=1)
            if "seed" not in json.loads(deployment.vendor.requests[-1].body):
                break
            assert time.monotonic() < deadline
    (model,) = (await client.get("/api/admin/models/catalog/?provider=in-house")).json()["items"]
    assert model["cost_per_input_token"] == 0.000003

    # The administrator's quirks precede those of the preset.
    changed = await client.patch(f"{path}/config", json={"quirks": {"limit_field": "max_tokens"}})
    assert (changed.status_code, changed.json()["config"]["quirks"], changed.json()["config"]["effective_quirks"]) == (
        200, {"limit_field": "max_tokens"}, {"limit_field": "max_tokens", "removed_fields": ["seed"]},
    ), changed.text  # fmt: skip
    _, body = await deployment.ask(max_tokens=9, seed=1)
    assert (body["max_tokens"], "seed" in body) == (9, False)
    assert (await client.patch(f"{path}/config", json={"quirks": {}})).status_code == 200
    _, body = await deployment.ask(max_tokens=9)
    assert body["max_completion_tokens"] == 9


async def test_a_provider_at_the_address_of_a_new_preset_is_assigned_to_it(deployment: Deployment) -> None:
    added = await deployment.client.put(
        f"{PROVIDERS}/older/credentials", json={"base_url": f"{deployment.vendor.url}/older"}
    )
    assert added.status_code == 200
    assert "preset" not in (await deployment.client.get(f"{PROVIDERS}/older")).json()["config"]
    older = content(deployment, "{ developer_role = false }").replace("in-house", "old-house").replace("/v1", "/older")
    await deployment.update(older)
    config = (await deployment.client.get(f"{PROVIDERS}/older")).json()["config"]
    assert (config["preset"], config["effective_quirks"]) == ("old-house", {"developer_role": False})


async def test_a_second_file_adds_models_to_a_preset_and_the_preset_can_be_removed(deployment: Deployment) -> None:
    client = deployment.client
    first = content(deployment, "{ developer_role = false }").replace("in-house", "new-house").replace("/v1", "/new/v1")
    head, _, model = first.partition("[new-house.small]")
    assert "no such preset" in await deployment.update("version = 1\n[new-house.small]" + model, status=1)
    await deployment.update(head)
    added = await client.put(f"{PROVIDERS}/new-house/credentials", json={"preset": "new-house", "api_key": KEY})
    assert added.status_code == 200, added.text
    assert "replaced" not in await deployment.update("version = 1\n[new-house.small]" + model)
    assert (await client.post("/api/admin/models/catalog/sync")).status_code == 200
    (entry,) = (await client.get("/api/admin/models/catalog/?provider=new-house")).json()["items"]
    assert (entry["context_window"], entry["price_source"]) == (8_000, "price_file")
    _, body = await deployment.ask("new-house/small")
    assert body["messages"][0]["role"] == "system"

    assert "new-house" in await deployment.run("remove", "new-house")
    assert "new-house" not in {one["id"] for one in (await client.get("/api/admin/provider-presets")).json()["presets"]}
    # Each worker receives some of these requests.
    for _ in range(8):
        _, body = await deployment.ask("new-house/small")
        assert body["messages"][0]["role"] == "developer"
    assert "nothing was changed" in await deployment.run("remove", "new-house", status=1)


async def test_a_preset_can_have_the_dialect_of_anthropic(deployment: Deployment) -> None:
    await deployment.update(CLAUDE_LIKE.format(url=deployment.vendor.url))
    client, path = deployment.client, f"{PROVIDERS}/messages"
    added = await client.put(f"{path}/credentials", json={"preset": "messages", "api_key": KEY})
    assert added.status_code == 200, added.text
    provider = (await client.get(path)).json()
    assert (provider["kind"], provider["config"]["format"]) == ("byoe", "anthropic")
    assert (await client.post("/api/admin/models/catalog/sync")).status_code == 200
    request, body = await deployment.ask("messages/small")
    assert request.head.startswith("POST /v1/messages ")
    assert (request.headers["authorization"], "x-api-key" in request.headers) == (f"Bearer {KEY}", False)
    assert body["system"] == "Be brief."


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("mine/credentials", {"preset": "nobody", "api_key": KEY}, "preset"),
        ("mine/credentials", {"preset": "groq", "kind": "gemini", "api_key": KEY}, "kind"),
        ("ours/config", {"preset": "nobody"}, "preset"),
        ("ours/config", {"quirks": {"is_odd": True}}, "quirks.is_odd"),
        ("ours/config", {"quirks": {"removed_fields": ["messages"]}}, "quirks.removed_fields.0"),
        ("ours/config", {"quirks": {"rerank_path": "https://elsewhere.example/"}}, "quirks.rerank_path"),
        ("ours/config", {"quirks": {"rerank_path": "//elsewhere.example/v1/rerank"}}, "quirks.rerank_path"),
        ("ours/config", {"quirks": {"rerank_path": "/\\\\elsewhere.example/v1/rerank"}}, "quirks.rerank_path"),
        ("theirs/config", {"quirks": {"developer_role": False}}, "quirks"),
        ("theirs/config", {"preset": "groq"}, "preset"),
    ],
)
async def test_bad_input_is_named(
    platform: RunningPlatform, tenant: Tenant, path: str, body: dict[str, Any], field: str
) -> None:
    await platform.add_provider(tenant.id, "ours", "openai_compatible", base_url="http://127.0.0.1:9/v1")
    await platform.add_provider(tenant.id, "theirs", "openai")
    method = "PUT" if path.endswith("credentials") else "PATCH"
    refused = await tenant.admin.client.request(method, f"{PROVIDERS}/{path}", json=body)
    assert refused.status_code == 422, refused.text
    assert [".".join(map(str, fault["loc"][1:])) for fault in refused.json()["detail"]] == [field]


async def test_quirks_are_changed_by_administrators_and_recorded(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    await platform.add_provider(tenant.id, "ours", "openai_compatible", base_url="https://api.deepseek.com")
    path, body = f"{PROVIDERS}/ours/config", {"quirks": {"stream_options": False}}
    assert (await platform.anonymous.patch(path, json=body)).status_code == 401
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.patch(path, json=body)).status_code == 403
    assert (await other_tenant.admin.client.patch(path, json=body)).status_code == 404
    changed = await tenant.admin.client.patch(path, json=body)
    assert changed.status_code == 200, changed.text
    # The provider was added before presets were stored with providers: its address decides.
    assert changed.json()["config"]["effective_quirks"] == {"developer_role": False, "stream_options": False}
    (event,) = await platform.audit(tenant, "provider.config_updated")
    assert event["details"]["quirks"] == {"stream_options": False}


async def test_a_provider_that_moves_has_the_preset_of_its_new_address(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    client, path = tenant.admin.client, f"{PROVIDERS}/ours"

    async def move(**body: Any) -> dict[str, Any]:
        answer = await client.put(f"{path}/credentials", json={"api_key": KEY, **body})
        assert answer.status_code == 200, answer.text
        config: dict[str, Any] = (await client.get(path)).json()["config"]
        return config

    assert (await move(preset="groq"))["preset"] == "groq"
    # Only the key is replaced.
    assert (await move())["preset"] == "groq"
    assert (await move(base_url="https://api.groq.com/openai/v1/"))["preset"] == "groq"
    config = await move(base_url="http://127.0.0.1:9/v1")
    assert (config["base_url"], "preset" in config, "effective_quirks" in config) == (
        "http://127.0.0.1:9/v1", False, False,
    )  # fmt: skip
    details = [event["details"] for event in await platform.audit(tenant, "provider.credentials_set")]
    assert ("preset" in details[1], details[-1]["preset"]) == (False, None)
    config = await move(base_url="https://api.deepseek.com")
    assert (config["preset"], config["effective_quirks"]) == ("deepseek", {"developer_role": False})
    # A preset that is named stays.
    assert (await move(base_url="http://127.0.0.1:9/v1", preset="groq"))["preset"] == "groq"


async def test_a_preset_is_removed_with_null(platform: RunningPlatform, tenant: Tenant) -> None:
    await platform.add_provider(tenant.id, "ours", "openai_compatible", base_url="http://127.0.0.1:9/v1", preset="groq")
    client, path = tenant.admin.client, f"{PROVIDERS}/ours/config"
    kept = await client.patch(path, json={"timeout_ms": 5_000})
    assert (kept.status_code, kept.json()["config"]["preset"]) == (200, "groq")
    removed = await client.patch(path, json={"preset": None})
    assert (removed.status_code, removed.json()["config"]) == (
        200, {"base_url": "http://127.0.0.1:9/v1", "timeout_ms": 5_000, "max_retries": 2},
    ), removed.text  # fmt: skip
    event = (await platform.audit(tenant, "provider.config_updated"))[-1]
    assert event["details"] == {"preset": None}


async def test_an_endpoint_of_one_s_own_that_moves_loses_its_preset(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.sql(
        "INSERT INTO vendors (tenant_id, id, preset, models) VALUES (%s, 'messages', %s, '{}')",
        [tenant.id, json.dumps(MESSAGES_PRESET)],
    )
    await platform.add_provider(
        tenant.id, "theirs", "byoe", base_url="http://127.0.0.1:9", format="anthropic", preset="messages"
    )
    client, path = tenant.admin.client, f"{PROVIDERS}/byoe/theirs"
    named = {"config": {"base_url": "http://127.0.0.1:8", "preset": "messages"}}
    for body, preset in (({"timeout_ms": 5_000}, "messages"), (named, "messages"), ({"config": {"preset": None}}, None),
                         ({"config": {"preset": "messages"}}, "messages"), ({"base_url": "http://127.0.0.1:7"}, None),
                         ({"base_url": "http://127.0.0.1:9"}, "messages")):  # fmt: skip
        answer = await client.patch(path, json=body)
        assert (answer.status_code, answer.json().get("config", {}).get("preset")) == (200, preset), answer.text
        quirks = None if preset is None else {"key_header": "authorization"}
        assert answer.json()["config"].get("effective_quirks") == quirks
    answer = await client.patch(path, json={"config": {"quirks": {"key_header": "x-api-key"}}})
    assert answer.json()["config"]["quirks"] == {"key_header": "x-api-key"}


async def test_models_of_a_file_are_recorded_with_their_vendor(
    platform: RunningPlatform, tenant: Tenant, tmp_path: Path
) -> None:
    shell, path = Shell(platform), tmp_path / "models.toml"
    model = MODEL.format(model="new-model", window=8_000)
    for content, count in ((model, 1), (model, 1), (model + MODEL.format(model="other", window=1), 2),
                           (MODEL.format(model="new-model", window=9_000), 3)):  # fmt: skip
        path.write_text(content)
        done = await shell.run("update", "-f", str(path), "--tenant", tenant.slug)
        assert done.exit_code == 0, done.output
        events = await platform.audit(tenant, "provider.presets_updated")
        assert len(events) == count
        assert events[-1]["details"] == {"presets": [], "providers": [], "models_of": ["openai"]}
    assert platform.breaks(tenant) == []
