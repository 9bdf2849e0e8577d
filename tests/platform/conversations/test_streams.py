"""Streamed answers: passed on as they come, and kept whatever becomes of them."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest
from tests.platform.conversations.conftest import Begin, contents, redacting, said
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Connection, upstream

CARD = "4242 4242 4242 4242"


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


async def test_a_stream_is_that_of_chat_completions_and_is_kept_when_its_end_is_read(
    talking: Tenant, begin: Begin
) -> None:
    client, path = talking.user.client, await begin()
    answer = await client.post(f"{path}/messages", json={"content": "one two three", "stream": True})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert (answer.headers["X-Gateway-Model"], answer.headers["X-DLP-Action"]) == ("echo", "ALLOW")
    direct = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "one two three"}], "stream": True}
    assert answer.text == (await client.post("/v1/chat/completions", json=direct)).text
    question, reply = await said(client, path)
    assert (question["content"], reply["content"]) == ("one two three", "one two three")
    assert (reply["status"], reply["model"], reply["finish_reason"]) == ("complete", "sandbox/echo", "stop")
    assert reply["request_id"] == answer.headers["X-Request-Id"]


async def test_whoever_has_read_the_end_finds_the_whole_answer(
    platform: RunningPlatform, talking: Tenant, begin: Begin, url: str
) -> None:
    path = await begin(model="sandbox/stream-50")
    async with _stranger(url, talking) as http:
        for _ in range(5):
            async with http.stream("POST", f"{path}/messages", json={"content": "x", "stream": True}) as answer:
                async for line in answer.aiter_lines():
                    if line == "data: [DONE]":
                        last = (await said(talking.user.client, path))[-1]
                        assert (last["status"], last["content"].endswith("chunk-49 ")) == ("complete", True)


async def test_of_an_answer_that_breaks_off_at_the_provider_is_kept_what_came(
    platform: RunningPlatform, talking: Tenant, begin: Begin
) -> None:
    client, path = talking.user.client, await begin(model="sandbox/cut")
    answer = await client.post(f"{path}/messages", json={"content": "one two three four", "stream": True})
    assert "event: error" in answer.text
    question, reply = await said(client, path)
    assert (question["content"], question["status"], reply["status"]) == (
        "one two three four",
        "complete",
        "incomplete",
    )
    assert reply["content"] == _text(answer.text)


async def test_an_answer_that_dlp_stops_is_kept_as_far_as_the_caller_has_read_it(
    platform: RunningPlatform, talking: Tenant
) -> None:
    await redacting(platform, talking, "block")
    words = ["My ", "card ", "is ", *f"{CARD} ".split(" "), " and that is all there is to say about it."]

    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for word in words:
            await connection.chunk(_chunk(word + " "))
        await connection.chunk(b"data: [DONE]\n\n")
        await connection.end_stream()

    async with upstream(behave) as provider:
        path = await _at(platform, talking, provider.url)
        answer = await talking.user.client.post(f"{path}/messages", json={"content": "which?", "stream": True})
    assert "dlp_violation" in answer.text
    question, reply = await said(talking.user.client, path)
    assert (question["content"], reply["status"], reply["content"]) == ("which?", "incomplete", _text(answer.text))
    assert "4242" not in reply["content"]


async def test_of_an_answer_whose_client_leaves_is_kept_what_came(
    platform: RunningPlatform, talking: Tenant, url: str
) -> None:
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        await connection.chunk(_chunk("word " * 10))
        # More than is held back for a look at what follows.
        await connection.chunk(_chunk("more " * 100))
        await connection.reader.read()

    async with upstream(behave) as provider:
        path = await _at(platform, talking, provider.url)
        async with _stranger(url, talking) as http:
            body = {"content": "go on", "stream": True}
            async with http.stream("POST", f"{path}/messages", json=body) as answer:
                async for line in answer.aiter_lines():
                    if "word" in line:
                        break
                running = (await said(talking.user.client, path))[-1]
                assert running["status"] == "incomplete"
        await asyncio.wait_for(provider.closed_by_client.wait(), 10)
    kept: list[dict[str, Any]] = []
    async with asyncio.timeout(10):
        while not kept or not kept[-1]["content"]:
            await asyncio.sleep(0.01)
            kept = await said(talking.user.client, path)
    assert (kept[0]["content"], kept[1]["status"]) == ("go on", "incomplete")
    assert "word word " in kept[1]["content"]


async def test_a_client_that_leaves_before_the_first_word_leaves_nothing(
    platform: RunningPlatform, talking: Tenant, url: str
) -> None:
    reached = asyncio.Event()

    async def behave(connection: Connection) -> None:
        reached.set()
        await connection.reader.read()

    async with upstream(behave) as provider:
        path = await _at(platform, talking, provider.url)
        async with _stranger(url, talking) as http:
            post = asyncio.create_task(http.post(f"{path}/messages", json={"content": "x", "stream": True}))
            await asyncio.wait_for(reached.wait(), 10)
            post.cancel()
            await asyncio.wait({post})
        await asyncio.wait_for(provider.closed_by_client.wait(), 10)
    count = "SELECT count(*) FROM conversation_messages WHERE tenant_id = %s"
    async with asyncio.timeout(10):
        while platform.sql(count, [talking.id]) != [(0,)]:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_a_stream_that_waits_for_a_person_is_kept_once_they_let_it_go_on(
    platform: RunningPlatform, talking: Tenant, begin: Begin, decision: str
) -> None:
    flag = "/api/v1/admin/org/feature-flags/human_in_loop"
    assert (await talking.admin.client.patch(flag, json={"enabled": True})).status_code == 200
    await redacting(platform, talking, "prompt")
    client, path = talking.user.client, await begin(model="sandbox/stream-50")
    post = asyncio.create_task(client.post(f"{path}/messages", json={"content": f"card {CARD}", "stream": True}))
    pending: list[dict[str, Any]] = []
    async with asyncio.timeout(10):
        while not pending:
            await asyncio.sleep(0.02)
            pending = (await talking.admin.client.get("/api/admin/approvals", params={"status": "pending"})).json()[
                "items"
            ]
    assert await said(client, path) == []
    await talking.admin.client.post(f"/api/admin/approvals/{pending[0]['id']}/{decision}", json={"reason": "x"})
    answer = await post
    kept = await said(client, path)
    if decision == "deny":
        assert ("dlp_violation" in answer.text, kept) == (True, [])
    else:
        assert [message["status"] for message in kept] == ["complete", "complete"]
        assert (kept[0]["content"], kept[1]["model"]) == (f"card {CARD}", "sandbox/stream-50")


async def test_a_stock_clients_parser_reads_the_stream(
    platform: RunningPlatform, talking: Tenant, begin: Begin, url: str
) -> None:
    path = await begin(model="sandbox/stream-50")
    key = await platform.new_key(talking.user)
    client = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0)
    stream = await client.post(
        f"{path}/messages",
        body={"content": "go", "stream": True},
        cast_to=object,
        stream=True,
        stream_cls=openai.AsyncStream[openai.types.chat.ChatCompletionChunk],
    )
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
    assert contents(await said(talking.user.client, path)) == [("user", "go"), ("assistant", text)]


def _stranger(url: str, talking: Tenant) -> httpx2.AsyncClient:
    """The user, over the network."""
    headers = {"Authorization": f"Bearer {talking.user.token}"}
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=30)


async def _at(platform: RunningPlatform, talking: Tenant, url: str) -> str:
    """A conversation with a model of that provider."""
    await platform.add_provider(talking.id, "own", "openai_compatible", "m", base_url=url, max_retries=0)
    made = await talking.user.client.post("/api/conversations", json={"model": "own/m"})
    return f"/api/conversations/{made.json()['id']}"


def _chunk(text: str) -> bytes:
    chunk = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _text(stream: str) -> str:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith('data: {"')]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ()))
