"""Effect of the configuration `registry_enforcement` on calls of the OpenAI client."""

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


async def register(tenant: Tenant, model_id: str, *statuses: str) -> str:
    """Create an entry for the sandbox's model, change its status step by step, and return its path."""
    admin = tenant.admin.client
    entry = await admin.post(BASE, json={"provider": "sandbox", "model_id": model_id})
    assert entry.status_code == 201, entry.text
    path = f"{BASE}/{entry.json()['id']}"
    for status in statuses:
        assert (await admin.put(path, json={"validation_status": status})).status_code == 200
    return path


VALIDATED = "pending_validation", "in_validation", "validated"


async def call_model(client: openai.AsyncOpenAI, model: str, *fallbacks: str) -> str:
    """Return the model that answered, or the error."""
    extra = {"fallbacks": list(fallbacks)} if fallbacks else None
    try:
        answer = await client.chat.completions.with_raw_response.create(model=model, messages=HELLO, extra_body=extra)
    except openai.PermissionDeniedError as error:
        return f"{error.type}: {error.code}"
    return answer.headers["x-gateway-model"]


async def test_a_model_is_blocked_until_it_is_validated_and_again_after_its_entry_is_deleted(
    sandbox: Tenant, client: openai.AsyncOpenAI
) -> None:
    assert await call_model(client, "sandbox/echo") == "echo"
    await enforce(sandbox, "block")
    assert await call_model(client, "sandbox/echo") == "policy_violation: model_not_registered"
    path = await register(sandbox, "echo", "pending_validation", "in_validation")
    assert await call_model(client, "sandbox/echo") == "policy_violation: model_not_validated"
    await sandbox.admin.client.put(path, json={"validation_status": "validated"})
    assert await call_model(client, "sandbox/echo") == "echo"
    assert [model.id async for model in client.models.list()] == ["sandbox/echo"]
    await sandbox.admin.client.delete(path)
    assert await call_model(client, "sandbox/echo") == "policy_violation: model_not_registered"
    await enforce(sandbox, "off")
    assert await call_model(client, "sandbox/echo") == "echo"


async def test_a_deprecated_model_is_blocked(sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    await enforce(sandbox, "block")
    path = await register(sandbox, "echo", *VALIDATED)
    assert await call_model(client, "sandbox/echo") == "echo"
    await sandbox.admin.client.put(path, json={"validation_status": "deprecated"})
    assert await call_model(client, "sandbox/echo") == "policy_violation: model_deprecated"


async def test_fallbacks_must_be_validated(sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    await enforce(sandbox, "block")
    await register(sandbox, "status-503", *VALIDATED)
    with pytest.raises(openai.InternalServerError) as error_info:
        await call_model(client, "sandbox/status-503", "sandbox/echo")
    assert error_info.value.code == "all_providers_failed"
    await register(sandbox, "slow-1ms", *VALIDATED)
    assert await call_model(client, "sandbox/status-503", "sandbox/echo", "sandbox/slow-1ms") == "slow-1ms"
    assert await call_model(client, "sandbox/echo", "sandbox/slow-1ms") == "slow-1ms"


async def test_the_target_of_a_policy_rule_must_be_validated(sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    await enforce(sandbox, "block")
    await register(sandbox, "echo", *VALIDATED)
    rule = {"name": "x", "condition": 'model == "sandbox/echo"', "action": "ROUTE", "route_to": "sandbox/slow-1ms"}
    assert (await sandbox.admin.client.post("/api/admin/policies", json=rule)).status_code == 201
    assert await call_model(client, "sandbox/echo") == "policy_violation: model_not_registered"
    await register(sandbox, "slow-1ms", *VALIDATED)
    assert await call_model(client, "sandbox/echo") == "slow-1ms"


async def test_the_model_that_auto_selects_must_be_validated(
    platform: RunningPlatform, sandbox: Tenant, client: openai.AsyncOpenAI
) -> None:
    platform.sql("UPDATE model_configs SET is_default = true WHERE tenant_id = %s AND model_id = 'echo'", [sandbox.id])
    await enforce(sandbox, "block")
    assert await call_model(client, "auto") == "policy_violation: model_not_registered"
    await register(sandbox, "echo", *VALIDATED)
    assert await call_model(client, "auto") == "echo"


async def test_the_warn_mode_allows_the_call_and_names_the_reason(sandbox: Tenant, client: openai.AsyncOpenAI) -> None:
    await enforce(sandbox, "warn")
    answer = await client.chat.completions.with_raw_response.create(model="sandbox/echo", messages=HELLO)
    assert answer.headers["x-gateway-warning"] == "model_not_registered"
    await register(sandbox, "echo", *VALIDATED)
    answer = await client.chat.completions.with_raw_response.create(model="sandbox/echo", messages=HELLO)
    assert "x-gateway-warning" not in answer.headers


async def test_enforcement_does_not_affect_another_organization(
    platform: RunningPlatform, sandbox: Tenant, other_tenant: Tenant
) -> None:
    await enforce(sandbox, "block")
    await platform.add_provider(other_tenant.id, "sandbox", "sandbox", "echo")
    body = {"model": "sandbox/echo", "messages": HELLO}
    answers = [
        await organization.user.client.post("/v1/chat/completions", json=body)
        for organization in (sandbox, other_tenant)
    ]
    assert [answer.status_code for answer in answers] == [403, 200]


async def test_the_environment_variable_applies_to_organizations_without_the_configuration(
    platform: RunningPlatform, sandbox: Tenant, client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_ENFORCEMENT", "block")
    platform.touch("policy", sandbox.id)
    await platform.refresh()
    assert await call_model(client, "sandbox/echo") == "policy_violation: model_not_registered"
    await enforce(sandbox, "off")
    assert await call_model(client, "sandbox/echo") == "echo"
