"""Model calls of conversations are treated as calls in progress: draining waits for them, and metrics include them."""

import asyncio

import pytest
from tests.platform.conversations.conftest import Begin, chunk, completion, conversation_with_provider, messages_of
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Connection, upstream


class Waiting:
    """A provider that starts a stream, or does not answer, until the test lets it continue."""

    def __init__(self) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def behave(self, connection: Connection) -> None:
        stream = b'"stream":true' in connection.body
        if stream:
            await connection.begin_stream()
            await connection.chunk(chunk("word " * 100))
        self.reached.set()
        await self.go_on.wait()
        if stream:
            await connection.chunk(b"data: [DONE]\n\n")
            await connection.end_stream()
        else:
            await connection.answer(completion("done"))


@pytest.mark.parametrize(("call", "stream"), [("messages", False), ("messages", True), ("summary", False)])
async def test_a_call_counts_until_its_answer_is_sent(
    platform: RunningPlatform, tenant_with_models: Tenant, call: str, stream: bool
) -> None:
    waiting, calls = Waiting(), platform.host.calls
    async with upstream(waiting.behave) as provider:
        client, path = (
            tenant_with_models.user.client,
            await conversation_with_provider(platform, tenant_with_models, provider.url),
        )
        await client.post(f"{path}/messages", json={"content": "first", "model": "sandbox/echo"})
        assert calls.count == 0
        body = {"content": "x", "stream": stream} if call == "messages" else None
        post = asyncio.create_task(client.post(f"{path}/{call}", json=body))
        await asyncio.wait_for(waiting.reached.wait(), 10)
        assert (calls.count, platform.host.node.report()) == (1, {"active": 1})
        waiting.go_on.set()
        assert (await post).status_code in {200, 201}
    assert calls.count == 0


async def test_the_generation_of_a_title_counts(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    waiting, calls = Waiting(), platform.host.calls
    async with upstream(waiting.behave) as provider:
        await platform.add_provider(
            tenant_with_models.id, "own", "openai_compatible", "m", base_url=provider.url, max_retries=0
        )
        await tenant_with_models.admin.client.put("/api/admin/config/auto_title_enabled", json={"value": "true"})
        await tenant_with_models.admin.client.put("/api/admin/config/auto_title_model", json={"value": "own/m"})
        client, path = tenant_with_models.user.client, await begin()
        assert (await client.post(f"{path}/messages", json={"content": "x"})).status_code == 201
        await asyncio.wait_for(waiting.reached.wait(), 10)
        assert calls.count == 1
        waiting.go_on.set()
        await platform.host.later.settle()
    assert (calls.count, (await client.get(path)).json()["title"]) == (0, "done")


async def test_a_refused_call_no_longer_counts(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin(model="sandbox/status-503")
    for stream in (False, True):
        answer = await client.post(f"{path}/messages", json={"content": "x", "stream": stream})
        assert answer.status_code == 502
    assert (platform.host.calls.count, await messages_of(client, path)) == (0, [])
