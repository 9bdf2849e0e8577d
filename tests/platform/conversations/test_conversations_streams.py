"""Streamed answers are forwarded as they arrive, and stored even if they break off."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import psycopg
import pytest
from tests.platform.conversations.conftest import (
    CARD,
    Begin,
    add_dlp_rule,
    chunk,
    contents,
    conversation_with_provider,
    messages_of,
    stored,
)
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Connection, upstream

from gatehouse.platform.conversations.conversations.calls import kept_stream


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


async def test_a_stream_has_the_format_of_chat_completions_and_is_stored_by_its_end(
    tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin()
    answer = await client.post(f"{path}/messages", json={"content": "one two three", "stream": True})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert (answer.headers["X-Gateway-Model"], answer.headers["X-DLP-Action"]) == ("echo", "ALLOW")
    direct = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "one two three"}], "stream": True}
    direct_answer = await client.post("/v1/chat/completions", json=direct)
    # The two answers were created at different times.
    assert re.sub(r'"created":\d+', "", answer.text) == re.sub(r'"created":\d+', "", direct_answer.text)
    question, reply = await messages_of(client, path)
    assert (question["content"], reply["content"]) == ("one two three", "one two three")
    assert (reply["status"], reply["model"], reply["finish_reason"]) == ("complete", "sandbox/echo", "stop")
    assert reply["request_id"] == answer.headers["X-Request-Id"]


async def test_after_the_end_of_the_stream_the_complete_answer_is_stored(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin, url: str
) -> None:
    path = await begin(model="sandbox/stream-50")
    async with _socket_client(url, tenant_with_models) as http:
        for _ in range(5):
            ends = 0
            async with http.stream("POST", f"{path}/messages", json={"content": "x", "stream": True}) as answer:
                async for line in answer.aiter_lines():
                    if line == "data: [DONE]":
                        ends += 1
                        last = (await messages_of(tenant_with_models.user.client, path))[-1]
                        assert (last["status"], last["content"].endswith("chunk-49 ")) == ("complete", True)
            assert ends == 1


async def test_the_received_part_is_stored_if_the_provider_breaks_off(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin(model="sandbox/cut")
    answer = await client.post(f"{path}/messages", json={"content": "one two three four", "stream": True})
    assert "event: error" in answer.text
    question, reply = await messages_of(client, path)
    assert (question["content"], question["status"], reply["status"]) == (
        "one two three four",
        "complete",
        "incomplete",
    )
    assert reply["content"] == _text(answer.text)


async def test_the_sent_part_is_stored_if_dlp_stops_the_answer(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    await add_dlp_rule(platform, tenant_with_models, "block")
    words = ["My ", "card ", "is ", *f"{CARD} ".split(" "), " and that is all there is to say about it."]

    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for word in words:
            await connection.chunk(chunk(word + " "))
        await connection.chunk(b"data: [DONE]\n\n")
        await connection.end_stream()

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        answer = await tenant_with_models.user.client.post(
            f"{path}/messages", json={"content": "which?", "stream": True}
        )
    assert "dlp_violation" in answer.text
    question, reply = await messages_of(tenant_with_models.user.client, path)
    assert (question["content"], reply["status"], reply["content"]) == ("which?", "incomplete", _text(answer.text))
    assert "4242 4242" not in reply["content"]


async def test_the_received_part_is_stored_if_the_client_disconnects(
    platform: RunningPlatform, tenant_with_models: Tenant, url: str
) -> None:
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        await connection.chunk(chunk("word " * 10))
        # More text than a stream holds back for inspection.
        await connection.chunk(chunk("more " * 100))
        await connection.reader.read()

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        async with _socket_client(url, tenant_with_models) as http:
            body = {"content": "go on", "stream": True}
            async with http.stream("POST", f"{path}/messages", json=body) as answer:
                async for line in answer.aiter_lines():
                    if "word" in line:
                        break
                running = (await messages_of(tenant_with_models.user.client, path))[-1]
                assert running["status"] == "incomplete"
        await asyncio.wait_for(provider.closed_by_client.wait(), 10)
    kept: list[dict[str, Any]] = []
    async with asyncio.timeout(60):
        while not kept or not kept[-1]["content"]:
            await asyncio.sleep(0.01)
            kept = await messages_of(tenant_with_models.user.client, path)
    assert (kept[0]["content"], kept[1]["status"]) == ("go on", "incomplete")
    assert "word word " in kept[1]["content"]


async def test_a_conversation_that_is_deleted_while_its_answer_streams_stays_deleted(
    platform: RunningPlatform, tenant_with_models: Tenant, url: str
) -> None:
    go_on = asyncio.Event()

    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for _ in range(10):
            await connection.chunk(chunk("early " * 10))
        await go_on.wait()
        await connection.chunk(chunk("late"))
        await connection.chunk(b"data: [DONE]\n\n")
        await connection.end_stream()

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        body = {"content": "go on", "stream": True}
        async with (
            _socket_client(url, tenant_with_models) as http,
            http.stream("POST", f"{path}/messages", json=body) as answer,
        ):
            lines = answer.aiter_lines()
            while "early" not in await anext(lines):
                pass
            assert (await tenant_with_models.user.client.delete(path)).status_code == 204
            go_on.set()
            rest = [line async for line in lines]
    assert "data: [DONE]" in rest
    await platform.host.later.settle()
    assert stored(platform, tenant_with_models.id) == ""


async def test_nothing_is_stored_if_the_client_disconnects_before_the_first_word(
    platform: RunningPlatform, tenant_with_models: Tenant, url: str
) -> None:
    reached = asyncio.Event()

    async def behave(connection: Connection) -> None:
        reached.set()
        await connection.reader.read()

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        async with _socket_client(url, tenant_with_models) as http:
            post = asyncio.create_task(http.post(f"{path}/messages", json={"content": "x", "stream": True}))
            await asyncio.wait_for(reached.wait(), 10)
            post.cancel()
            await asyncio.wait({post})
        await asyncio.wait_for(provider.closed_by_client.wait(), 10)
    count = "SELECT count(*) FROM conversation_messages WHERE tenant_id = %s"
    async with asyncio.timeout(60):
        while platform.sql(count, [tenant_with_models.id]) != [(0,)]:
            await asyncio.sleep(0.01)


async def test_the_received_part_of_a_running_answer_is_stored_regularly(
    platform: RunningPlatform, tenant_with_models: Tenant, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_stream, "SAVE_INTERVAL_SECONDS", 0.02)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for _ in range(10):
            await connection.chunk(chunk("early " * 10))
        await begun.wait()
        for _ in range(10):
            await connection.chunk(chunk("late " * 10))
        await go_on.wait()
        await connection.chunk(chunk("end"))
        await connection.chunk(b"data: [DONE]\n\n")
        await connection.end_stream()

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        body = {"content": "go on", "stream": True}
        async with (
            _socket_client(url, tenant_with_models) as http,
            http.stream("POST", f"{path}/messages", json=body) as answer,
        ):
            lines = answer.aiter_lines()
            while "early" not in await anext(lines):
                pass
            begun.set()
            async with asyncio.timeout(60):
                while (
                    "late" not in (running := (await messages_of(tenant_with_models.user.client, path))[-1])["content"]
                ):
                    await asyncio.sleep(0.01)
            assert running["status"] == "incomplete"
            go_on.set()
            async for _ in lines:
                pass
    last = (await messages_of(tenant_with_models.user.client, path))[-1]
    assert (last["status"], last["content"]) == ("complete", "early " * 100 + "late " * 100 + "end")


async def test_the_answer_is_stored_if_the_client_disconnects_while_it_is_being_stored(
    platform: RunningPlatform, tenant_with_models: Tenant, url: str
) -> None:
    go_on, received = asyncio.Event(), asyncio.Event()

    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for _ in range(10):
            await connection.chunk(chunk("early " * 10))
        await go_on.wait()
        await connection.chunk(chunk("late"))
        await connection.chunk(b"data: [DONE]\n\n")
        await connection.end_stream()
        received.set()

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        with psycopg.connect(platform.installed.owner_url) as elsewhere:
            body = {"content": "go on", "stream": True}
            async with (
                _socket_client(url, tenant_with_models) as http,
                http.stream("POST", f"{path}/messages", json=body) as answer,
            ):
                async for line in answer.aiter_lines():
                    if "early" in line:
                        break
                elsewhere.execute(
                    "SELECT 1 FROM conversations WHERE tenant_id = %s FOR UPDATE", [tenant_with_models.id]
                )
                go_on.set()
                await asyncio.wait_for(received.wait(), 10)
                await _waiting_for_a_lock(platform)
            # The client has disconnected; only now can the answer be stored.
            await asyncio.sleep(0.2)
    async with asyncio.timeout(60):
        while (last := (await messages_of(tenant_with_models.user.client, path))[-1])["status"] != "complete":
            await asyncio.sleep(0.01)
    assert last["content"] == "early " * 100 + "late"


async def test_a_stream_that_cannot_be_stored_ends_with_an_error(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin()
    with _writing_blocked(platform, tenant_with_models):
        answer = await client.post(f"{path}/messages", json={"content": "hello", "stream": True})
    assert answer.status_code == 200
    assert "[DONE]" not in answer.text
    event, data = answer.text.strip().splitlines()[-2:]
    assert (event, json.loads(data.removeprefix("data: "))["error"]["code"]) == ("event: error", "not_kept")


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_a_stream_that_waits_for_an_approval_is_stored_after_the_decision(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin, decision: str
) -> None:
    flag = "/api/v1/admin/org/feature-flags/human_in_loop"
    assert (await tenant_with_models.admin.client.patch(flag, json={"enabled": True})).status_code == 200
    await add_dlp_rule(platform, tenant_with_models, "prompt")
    client, path = tenant_with_models.user.client, await begin(model="sandbox/stream-50")
    post = asyncio.create_task(client.post(f"{path}/messages", json={"content": f"card {CARD}", "stream": True}))
    pending: list[dict[str, Any]] = []
    async with asyncio.timeout(60):
        while not pending:
            await asyncio.sleep(0.02)
            pending = (
                await tenant_with_models.admin.client.get("/api/admin/approvals", params={"status": "pending"})
            ).json()["items"]
    assert await messages_of(client, path) == []
    await tenant_with_models.admin.client.post(
        f"/api/admin/approvals/{pending[0]['id']}/{decision}", json={"reason": "x"}
    )
    answer = await post
    kept = await messages_of(client, path)
    if decision == "deny":
        assert ("dlp_violation" in answer.text, kept) == (True, [])
    else:
        assert [message["status"] for message in kept] == ["complete", "complete"]
        assert (kept[0]["content"], kept[1]["model"]) == (f"card {CARD}", "sandbox/stream-50")


async def test_the_parser_of_a_standard_client_reads_the_stream(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin, url: str
) -> None:
    path = await begin(model="sandbox/stream-50")
    key = await platform.new_key(tenant_with_models.user)
    client = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0)
    stream = await client.post(
        f"{path}/messages",
        body={"content": "go", "stream": True},
        cast_to=object,
        stream=True,
        stream_cls=openai.AsyncStream[openai.types.chat.ChatCompletionChunk],
    )
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
    assert contents(await messages_of(tenant_with_models.user.client, path)) == [("user", "go"), ("assistant", text)]


async def _waiting_for_a_lock(platform: RunningPlatform) -> None:
    """Wait until another transaction waits for a lock."""
    async with asyncio.timeout(60):
        while platform.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(0,)]:
            await asyncio.sleep(0.01)


@contextmanager
def _writing_blocked(platform: RunningPlatform, tenant_with_models: Tenant) -> Iterator[None]:
    """Block the writing of the organization's messages after their positions were assigned."""
    platform.sql(
        "CREATE FUNCTION not_now() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$"
    )
    platform.sql(
        "CREATE TRIGGER not_now BEFORE UPDATE ON conversation_messages FOR EACH ROW"
        f" WHEN (OLD.tenant_id = '{tenant_with_models.id}') EXECUTE FUNCTION not_now()"
    )
    try:
        yield
    finally:
        platform.sql("DROP FUNCTION not_now CASCADE")


def _socket_client(url: str, tenant_with_models: Tenant) -> httpx2.AsyncClient:
    """Return a client of the user on a real socket."""
    headers = {"Authorization": f"Bearer {tenant_with_models.user.token}"}
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=60)


def _text(stream: str) -> str:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith('data: {"')]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ()))
