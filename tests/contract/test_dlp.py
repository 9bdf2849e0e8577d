"""Data-loss prevention with the stock clients, over HTTP, with rules that are created with the administration API."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from tests.support.platform import RunningPlatform, Tenant

CARD = "4242 4242 4242 4242"
MODELS = ["echo", "stream-50", "tools", "embed"]


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture
async def caller(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *MODELS, max_retries=0)
    return tenant


@pytest.fixture
async def key(platform: RunningPlatform, caller: Tenant) -> str:
    return await platform.new_key(caller.user)


@pytest.fixture
def client(url: str, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)


def asks(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def make_rule(platform: RunningPlatform, caller: Tenant, **rule: Any) -> dict[str, Any]:
    body = {"detector_name": "a rule", "detector_type": "regex", "entity_type": "credit_card", **rule}
    answer = await caller.admin.client.post("/api/admin/dlp-rules/", json=body)
    assert answer.status_code == 201, answer.text
    await platform.refresh()
    made: dict[str, Any] = answer.json()
    return made


async def test_redacted_values_are_not_in_plain_or_streamed_answers(client: openai.AsyncOpenAI) -> None:
    completion = await client.chat.completions.create(model="sandbox/echo", messages=asks(f"my card is {CARD} ok"))
    assert completion.choices[0].message.content == "my card is [CREDIT_CARD_1] ok"
    stream = await client.chat.completions.create(
        model="sandbox/echo", messages=asks(f"my card is {CARD} ok"), stream=True
    )
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
    assert text == "my card is [CREDIT_CARD_1] ok"


async def test_anthropics_client_gets_the_same(url: str, key: str) -> None:
    client = anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0)
    async with client.messages.stream(
        model="sandbox/echo", max_tokens=99, system=f"card {CARD}", messages=asks(f"my card is {CARD}")
    ) as stream:
        text = await stream.get_final_text()
    assert CARD not in text
    assert "[CREDIT_CARD_1]" in text


async def test_a_block_is_the_clients_own_exception(
    platform: RunningPlatform, caller: Tenant, client: openai.AsyncOpenAI
) -> None:
    rule = await make_rule(platform, caller, action_tier="block")
    with pytest.raises(openai.PermissionDeniedError) as refused:
        await client.chat.completions.create(model="sandbox/echo", messages=asks(f"my card is {CARD}"))
    error: Any = refused.value.body
    assert (error["type"], error["rule_id"]) == ("dlp_violation", rule["id"])
    assert refused.value.response.headers["X-DLP-Action"] == "BLOCK"
    assert CARD not in refused.value.response.text


async def test_a_reversible_rule_restores_values_for_the_caller(
    platform: RunningPlatform, caller: Tenant, client: openai.AsyncOpenAI
) -> None:
    await make_rule(platform, caller, action_tier="redact", config_json={"reversible": True})
    stream = await client.chat.completions.create(
        model="sandbox/echo", messages=asks(f"my card is {CARD} ok"), stream=True
    )
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
    assert text == f"my card is {CARD} ok"


async def test_a_deleted_rule_is_out_of_force_at_once(
    platform: RunningPlatform, caller: Tenant, client: openai.AsyncOpenAI
) -> None:
    rule = await make_rule(platform, caller, action_tier="block")
    await caller.admin.client.delete(f"/api/admin/dlp-rules/{rule['id']}")
    await platform.refresh()
    answer = await client.chat.completions.create(model="sandbox/echo", messages=asks(CARD))
    assert answer.choices[0].message.content == "[CREDIT_CARD_1]"


async def test_inputs_of_embeddings_are_inspected(
    platform: RunningPlatform, caller: Tenant, client: openai.AsyncOpenAI
) -> None:
    await make_rule(platform, caller, action_tier="block")
    with pytest.raises(openai.PermissionDeniedError):
        await client.embeddings.create(model="sandbox/embed", input=["fine", CARD])


async def test_a_scan_over_http(platform: RunningPlatform, url: str, caller: Tenant) -> None:
    key = await platform.new_key(caller.admin)
    async with httpx2.AsyncClient(base_url=url, headers={"X-API-Key": key}) as http:
        answer = await http.post("/v1/scan", json={"text": f"my card is {CARD}", "model": "sandbox/echo"})
    body = answer.json()
    assert answer.status_code == 200
    assert (body["action"], body["redacted_text"]) == ("REDACT", "my card is [CREDIT_CARD_1]")
    assert (answer.headers["X-DLP-Action"], "X-RateLimit-Limit" in answer.headers) == ("REDACT", True)


async def test_a_scan_needs_a_credential_its_scope_and_a_body(
    platform: RunningPlatform, url: str, caller: Tenant
) -> None:
    body = {"text": "a", "model": "m"}
    async with httpx2.AsyncClient(base_url=url) as http:
        assert (await http.post("/v1/scan", json=body)).status_code == 401
        key = await platform.new_key(caller.admin)
        response = await http.post("/v1/scan", json={"model": "m"}, headers={"X-API-Key": key})
        assert (response.status_code, "text" in response.json()["error"]["message"]) == (400, True)
    machine = await platform.new_m2m(caller.id, "chat:write")
    refused = await machine.post("/v1/scan", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")
