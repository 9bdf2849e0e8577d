"""Names of models: the answer repeats the name in the request, and an id without provider may match several models."""

import json
from typing import Any

import pytest
from tests.platform.routing.test_cost_routing import drained
from tests.platform.routing.test_cost_routing_response_cache import POLICIES, kept
from tests.support.engine import completion
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Connection, upstream

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
EMBEDDINGS = "/v1/embeddings"
#: paths, and the fields that a request has there besides `model`
CALLS = {
    "/v1/chat/completions": CHAT,
    "/v1/messages": {**CHAT, "max_tokens": 50},
    "/v1/responses": {"input": "Hello"},
    EMBEDDINGS: {"input": "Hello"},
}


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "embed", "status-503")
    return tenant


@pytest.fixture
async def twice(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    """The model `echo` at two providers; the second is cheaper."""
    await platform.add_provider(tenant.id, "one", "sandbox", "echo")
    await platform.add_provider(tenant.id, "two", "sandbox", "echo")
    platform.sql(
        "UPDATE model_configs SET cost_per_input_token = 0.0000001 WHERE tenant_id = %s AND provider = 'two'",
        [tenant.id],
    )
    platform.touch("policy", tenant.id)
    await platform.refresh()
    return tenant


def named_in(answer: str) -> set[str]:
    """Return every `model` in a body or in the events of a stream."""
    lines = [line.removeprefix("data: ") for line in answer.splitlines() if line.startswith("data: {")] or [answer]
    names: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("model"), str):
                names.add(value["model"])
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    for line in lines:
        look(json.loads(line))
    return names


@pytest.mark.parametrize(
    ("path", "stream"),
    [(path, stream) for path in CALLS for stream in (False, True) if not stream or path != EMBEDDINGS],
)
async def test_an_answer_names_the_model_as_requested(sandbox: Tenant, path: str, stream: bool) -> None:
    model = "embed" if path == EMBEDDINGS else "echo"
    for item in (model, f"sandbox/{model}"):
        body = {**CALLS[path], "model": item}
        if stream:
            body["stream"] = True
        answer = await sandbox.user.client.post(path, json=body)
        assert (answer.status_code, named_in(answer.text)) == (200, {item}), answer.text
        assert (answer.headers["X-Gateway-Provider"], answer.headers["X-Gateway-Model"]) == ("sandbox", model)


async def test_fallbacks_and_auto_answer_under_the_requested_name_and_are_recorded_under_the_real_one(
    platform: RunningPlatform, sandbox: Tenant
) -> None:
    body = {**CHAT, "model": "sandbox/status-503", "fallbacks": ["sandbox/echo"]}
    answer = await sandbox.user.client.post("/v1/chat/completions", json=body)
    assert (answer.json()["model"], answer.headers["X-Gateway-Model"]) == ("sandbox/status-503", "echo")
    await drained(platform)
    records = (await sandbox.admin.client.get("/api/v1/usage/records")).json()["records"]
    (record,) = [record for record in records if record["request_id"] == answer.headers["X-Request-Id"]]
    assert (record["provider"], record["model_id"]) == ("sandbox", "echo")
    await kept(sandbox)
    answer = await sandbox.user.client.post("/v1/chat/completions", json={**CHAT, "model": "auto"})
    assert answer.json()["model"] == "auto"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cached_answer_names_the_model_as_requested(sandbox: Tenant, stream: bool) -> None:
    await kept(sandbox)
    for item in ("echo", "sandbox/echo") * 2:
        body = {**CHAT, "model": item, "stream": stream}
        answer = await sandbox.user.client.post("/v1/chat/completions", json=body)
        assert named_in(answer.text) == {item}
    assert answer.headers["X-Gateway-Cache"] == "hit"


async def test_an_answer_has_the_requested_model_name_whatever_the_provider_calls_it(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    async def behave(connection: Connection) -> None:
        await connection.answer(completion("Hello", model="m-2026-11-23", created=1795459617))

    async with upstream(behave) as provider:
        await platform.add_provider(tenant.id, "own", "openai_compatible", "m", base_url=f"{provider.url}/v1")
        answer = await tenant.user.client.post("/v1/chat/completions", json={**CHAT, "model": "own/m"})
    assert (answer.json()["model"], answer.json()["created"]) == ("own/m", 1795459617)


async def test_a_bare_id_of_several_providers_selects_the_cheapest(twice: Tenant) -> None:
    answer = await twice.user.client.post("/v1/chat/completions", json={**CHAT, "model": "echo"})
    assert (answer.status_code, answer.headers["X-Gateway-Provider"]) == (200, "two"), answer.text
    assert answer.json()["model"] == "echo"


async def test_the_others_of_a_bare_id_are_its_fallbacks(platform: RunningPlatform, tenant: Tenant) -> None:
    async def fails(connection: Connection) -> None:
        await connection.answer(b'{"error": {"message": "no"}}', status=500)

    async with upstream(fails) as provider:
        await platform.add_provider(
            tenant.id, "a", "openai_compatible", "echo", base_url=f"{provider.url}/v1", max_retries=0
        )
        await platform.add_provider(tenant.id, "b", "sandbox", "echo")
        answer = await tenant.user.client.post("/v1/chat/completions", json={**CHAT, "model": "echo"})
    assert (answer.headers["X-Gateway-Provider"], answer.headers["X-Gateway-Fallbacks"]) == ("b", "1")


async def test_a_provider_that_is_switched_off_leaves_the_bare_id_to_the_others(
    platform: RunningPlatform, twice: Tenant
) -> None:
    path = "/api/v1/admin/kill-switch/providers/two/disable"
    assert (await twice.admin.client.post(path, json={"reason": "other"})).status_code == 200
    answer = await twice.user.client.post("/v1/chat/completions", json={**CHAT, "model": "echo"})
    assert (answer.status_code, answer.headers["X-Gateway-Provider"]) == (200, "one")


async def test_a_routing_policy_chooses_among_the_providers_of_a_bare_id(twice: Tenant) -> None:
    chain = [
        {"provider": "one", "model_id": "echo", "priority": 1},
        {"provider": "two", "model_id": "echo", "priority": 2},
    ]
    policy = {"name": "by hand", "strategy": "manual_fallback", "fallback_chain": chain}
    made = await twice.admin.client.post(POLICIES, json=policy)
    assert made.status_code == 201, made.text
    answer = await twice.user.client.post("/v1/chat/completions", json={**CHAT, "model": "echo"})
    assert answer.headers["X-Gateway-Provider"] == "one"


async def test_a_policy_that_may_choose_none_of_them_names_them(platform: RunningPlatform, twice: Tenant) -> None:
    await platform.add_provider(twice.id, "third", "sandbox", "stream-1")
    chain = [{"provider": "third", "model_id": "stream-1", "priority": 1}]
    policy = {"name": "by hand", "strategy": "manual_fallback", "fallback_chain": chain}
    assert (await twice.admin.client.post(POLICIES, json=policy)).status_code == 201
    answer = await twice.user.client.post("/v1/chat/completions", json={**CHAT, "model": "echo"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "ambiguous_model", "model")
    assert "two/echo, one/echo" in error["message"]
    answer = await twice.user.client.post("/v1/chat/completions", json={**CHAT, "model": "one/echo"})
    assert answer.status_code == 200


async def test_a_conversation_about_a_bare_id_of_several_providers_is_with_the_cheapest(twice: Tenant) -> None:
    made = await twice.user.client.post("/api/conversations", json={"model": "echo"})
    assert (made.status_code, made.json()["model"]) == (201, "two/echo"), made.text
