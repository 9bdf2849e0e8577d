"""Conversations on a real server that is stopped or killed during a streamed answer."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.server import GatehouseServer
from tests.support.upstream import Connection, upstream

BASE = "/api/conversations"


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer(env={"DRAIN_SECONDS": "1", "AUTO_TITLE_ENABLED": "false"}) as running:
        yield running


@asynccontextmanager
async def streaming(server: GatehouseServer) -> AsyncIterator[str]:
    """Yield the path of a conversation whose streamed answer has begun and does not continue."""

    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for text in ("word " * 10, "more " * 100):
            chunk = {"id": "x", "choices": [{"index": 0, "delta": {"content": text}}]}
            await connection.chunk(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await connection.reader.read()

    headers = {"Authorization": f"Bearer {server.key}"}
    client = httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60)
    async with upstream(behave) as provider, client:
        name = f"own-{uuid4().hex[:8]}"
        await asyncio.to_thread(server.add_provider, name, provider.url, ["m"], max_retries=0)
        path = f"{BASE}/{(await client.post(BASE, json={'model': f'{name}/m'})).json()['id']}"
        begun = asyncio.Event()

        async def read() -> str:
            text = ""
            body = {"content": "go on", "stream": True}
            try:
                async with client.stream("POST", f"{path}/messages", json=body) as answer:
                    async for line in answer.aiter_lines():
                        text += line
                        begun.set()
            except httpx2.HTTPError:
                text += "cut"
            return text

        reading = asyncio.create_task(read())
        await asyncio.wait_for(begun.wait(), 20)
        yield path
        # Either the stream ends with an error event, or the connection breaks off.
        result = await asyncio.wait_for(reading, 30)
        assert "[DONE]" not in result
        assert "error" in result or "cut" in result


async def messages_of(server: GatehouseServer, path: str) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        messages: list[dict[str, Any]] = (await client.get(f"{path}/messages")).json()["messages"]
        return messages


async def test_a_server_that_stops_during_a_stream_stores_the_text_until_then(server: GatehouseServer) -> None:
    async with streaming(server) as path:
        assert await asyncio.to_thread(server.stop) == 0
    # The database stopped with the server, so this test needs a new connection.
    await asyncio.to_thread(server.stop_database)
    await asyncio.to_thread(server.start)
    question, reply = await messages_of(server, path)
    assert (question["content"], reply["status"]) == ("go on", "incomplete")
    assert "word word " in reply["content"]


async def test_after_a_worker_is_killed_during_a_stream_the_question_is_stored_and_the_conversation_continues(
    server: GatehouseServer,
) -> None:
    async with streaming(server) as path:
        (worker,) = server.workers
        worker.kill()
    deadline = time.monotonic() + 60
    while not [item for item in server.workers if item.pid != worker.pid]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    question, reply = await messages_of(server, path)
    assert (question["content"], question["status"], reply["status"]) == ("go on", "complete", "incomplete")
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        body = {"content": "and now?", "model": "sandbox/echo"}
        assert (await client.post(f"{path}/messages", json=body)).status_code == 201
    assert [message["sequence"] for message in await messages_of(server, path)] == [1, 2, 3, 4]
