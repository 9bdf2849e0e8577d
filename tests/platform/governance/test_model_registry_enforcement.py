"""The configuration `registry_enforcement`, seen by a stock client through the gateway."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/admin/models"
CONFIG = "/api/admin/config/registry_enforcement"
HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "slow-1ms", "status-503", max_retries=0)
    return tenant


@pytest.fixture
async def client(url: str, platform: RunningPlatform, sandbox: Tenant) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=await platform.new_key(sandbox.user), max_retries=0)


async def enforce(tenant: Tenant, value: str) -> None:
    assert (await tenant.admin.client.put(CONFIG, json={"value": value})).status_code == 200


async def registered(tenant: Tenant, model_id: str, *statuses: str) -> str:
    """Create an entry for the sandbox's model, change its status step by step, and return its path."""
    admin = tenant.admin.client
    entry = await admin.post(BASE, json={"provider": "sandbox", "model_id": model_id})
    assert entry.status_code == 201, entry.text
    path = f"{BASE}/{entry.json()['id']}"
    for status in statuses:
        assert (await admin.put(path, json={"validation_status": status})).status_code == 200
    return path


VALIDATED = "pending_validation", "in_validation", "validated"


async def ask(client: openai.AsyncOpenAI, model: str, *fallbacks: str) -> str:
    """Return the model that answered, or the error."""
    extra = {"fallbacks": list(fallbacks)} if fallbacks else None
    try:
        answer = await client.chat.completions.with_raw_response.create(model=model, messages=HELLO, extra_body=extra)
    except openai.PermissionDeniedError as error:
        return f"{error.type}: {error.code}"
    return answer.headers["x-gateway-model"]


async def test_blocked_until_validated_and_again_once_removed_with_each_answer(
    sandbox: Tenant, client: openai.AsyncOpenAI
) -> None:
    assert await ask(client, "sandbox/echo") == "echo"
    await enforce(sandbox, "block")
    assert await ask(client, "sandbox/echo") == "policy_violation: model_not_registered"
    path = await registered(sandbox, "echo", "pending_validation", "in_validation")
    assert await ask(client, "sandbox/echo") == "policy_violation: model_not_validated"
    await sandbox.admin.client.put(path, json={"validation_status": "validated"})
    assert await ask(client, "sandbox/echo") == "echo"
    assert [model.id async for model in client.models.list()] == ["sandbox/echo"]
    await sandbox.admin.client.delete(path)
    assert await ask(client, "sandbox/echo") == "policy_violation: model_not_registered"
    await enforce(sandbox, "off")
    assert await ask(client, "sandbox/echo") == "echo"


async def test_a_deprecated_model_is_not_routable(sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    await enforce(sandbox, "block")
    path = await registered(sandbox, "echo", *VALIDATED)
    assert await ask(client, "sandbox/echo") == "echo"
    await sandbox.admin.client.put(path, json={"validation_status": "deprecated"})
    assert await ask(client, "sandbox/echo") == "policy_violation: model_deprecated"


async def test_fallbacks_are_held_to_it(sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    await enforce(sandbox, "block")
    await registered(sandbox, "status-503", *VALIDATED)
    with pytest.raises(openai.InternalServerError) as failed:
        await ask(client, "sandbox/status-503", "sandbox/echo")
    assert failed.value.code == "all_providers_failed"
    await registered(sandbox, "slow-1ms", *VALIDATED)
    assert await ask(client, "sandbox/status-503", "sandbox/echo", "sandbox/slow-1ms") == "slow-1ms"
    assert await ask(client, "sandbox/echo", "sandbox/slow-1ms") == "slow-1ms"


async def test_what_a_policy_rule_routes_to_is_held_to_it(sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    await enforce(sandbox, "block")
    await registered(sandbox, "echo", *VALIDATED)
    rule = {"name": "x", "condition": 'model == "sandbox/echo"', "action": "ROUTE", "route_to": "sandbox/slow-1ms"}
    assert (await sandbox.admin.client.post("/api/admin/policies", json=rule)).status_code == 201
    assert await ask(client, "sandbox/echo") == "policy_violation: model_not_registered"
    await registered(sandbox, "slow-1ms", *VALIDATED)
    assert await ask(client, "sandbox/echo") == "slow-1ms"


async def test_auto_is_held_to_it(platform: RunningPlatform, sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    platform.sql("UPDATE model_configs SET is_default = true WHERE tenant_id = %s AND model_id = 'echo'", [sandbox.id])
    await enforce(sandbox, "block")
    assert await ask(client, "auto") == "policy_violation: model_not_registered"
    await registered(sandbox, "echo", *VALIDATED)
    assert await ask(client, "auto") == "echo"


async def test_a_warning_lets_the_call_pass_and_says_why(sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    await enforce(sandbox, "warn")
    answer = await client.chat.completions.with_raw_response.create(model="sandbox/echo", messages=HELLO)
    assert answer.headers["x-gateway-warning"] == "model_not_registered"
    await registered(sandbox, "echo", *VALIDATED)
    answer = await client.chat.completions.with_raw_response.create(model="sandbox/echo", messages=HELLO)
    assert "x-gateway-warning" not in answer.headers


async def test_another_organization_is_not_held_to_it(
    platform: RunningPlatform, sandbox: Tenant, other_tenant: Tenant
) -> None:
    await enforce(sandbox, "block")
    await platform.add_provider(other_tenant.id, "sandbox", "sandbox", "echo")
    body = {"model": "sandbox/echo", "messages": HELLO}
    answers = [await one.user.client.post("/v1/chat/completions", json=body) for one in (sandbox, other_tenant)]
    assert [answer.status_code for answer in answers] == [403, 200]


async def test_the_environment_holds_where_an_organization_has_set_nothing(
    platform: RunningPlatform, sandbox: Tenant, client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_ENFORCEMENT", "block")
    platform.touch("policy", sandbox.id)
    await platform.refresh()
    assert await ask(client, "sandbox/echo") == "policy_violation: model_not_registered"
    await enforce(sandbox, "off")
    assert await ask(client, "sandbox/echo") == "echo"
