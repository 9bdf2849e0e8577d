"""The default rules of data-loss prevention do not redact times in responses, although some have the check digits of
identifiers."""

from typing import Any

import msgspec
from tests.support.engine import completion
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Connection, upstream

#: Consecutive seconds. Some of them have the check digits of identifiers.
TIMES = range(1795459600, 1795459640)


async def test_times_in_responses_are_not_redacted(platform: RunningPlatform, tenant: Tenant) -> None:
    times = iter(TIMES)

    async def behave(connection: Connection) -> None:
        created = next(times)
        usage = {"prompt_tokens": created, "completion_tokens": 1, "total_tokens": created + 1}
        body = msgspec.json.decode(completion("Hello", created=created))
        await connection.answer(msgspec.json.encode({**body, "usage": usage}))

    async with upstream(behave) as provider:
        await platform.add_provider(tenant.id, "own", "openai_compatible", "m", base_url=f"{provider.url}/v1")
        for index, _ in enumerate(TIMES):
            body: dict[str, Any] = {"model": "own/m"}
            if index % 2:
                path, field = "/v1/responses", "created_at"
                body["input"] = "Hello"
            else:
                path, field = "/v1/chat/completions", "created"
                body["messages"] = [{"role": "user", "content": "Hello"}]
            answer = await tenant.user.client.post(path, json=body)
            assert (answer.json()[field], answer.headers["X-DLP-Action"]) == (TIMES[index], "ALLOW"), answer.text


async def test_anthropics_endpoints_return_the_request_id_in_their_own_header(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    body = {"model": "sandbox/echo", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    good = await tenant.user.client.post("/v1/messages", json=body)
    bad = await tenant.user.client.post("/v1/messages", json={})
    models = await tenant.user.client.get("/v1/models", headers={"anthropic-version": "2023-06-01"})
    for answer in (good, bad, models):
        assert answer.headers["request-id"] == answer.headers["x-request-id"]
    other = await tenant.user.client.post("/v1/chat/completions", json=body)
    assert "request-id" not in other.headers
