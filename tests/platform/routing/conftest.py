"""Fake providers on 127.0.0.1 that the test controls."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.support.upstream import Connection, upstream

_COMPLETION = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "pong"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}  # fmt: skip
_MESSAGE = {
    "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "pong"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip


class FakeProvider:
    """A provider that answers as its `mode` requires.

    good      answers correctly
    a status  answers with an error of this HTTP status
    hang      does not answer for a minute
    drip      sends a byte of the body every 0.02 seconds
    garbage   answers with HTML instead of JSON
    cut       closes the connection in the middle of the body
    huge      announces a body of one gigabyte
    echo_key  answers 400 with a message that contains the credential
    """

    def __init__(self) -> None:
        self.mode: str | int = "good"
        self.models: list[dict[str, Any]] = [{"id": "small", "context_length": 8_000}, {"id": "vendor/large"}]
        self.url = ""
        self.requests: list[Connection] = []

    @property
    def paths(self) -> list[str]:
        return [request.head.split(" ")[1] for request in self.requests]

    async def behave(self, connection: Connection) -> None:
        path = connection.head.split(" ")[1]
        match self.mode:
            case "hang":
                await asyncio.sleep(60)
            case "drip":
                await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
                for _ in range(1000):
                    await connection.send(b" ")
                    await asyncio.sleep(0.02)
            case "garbage":
                await connection.answer(b"<html>not what you asked for</html>")
            case "cut":
                await connection.send(b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"data": [')
                connection.writer.close()
            case "huge":
                await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n{}")
            case "echo_key":
                credential = connection.headers.get("authorization") or connection.headers.get("x-api-key", "")
                body = {"error": {"message": f"Incorrect API key provided: {credential}"}}
                await connection.answer(json.dumps(body).encode(), status=400)
            case int(status):
                await connection.answer(b'{"error": {"message": "no"}}', status=status)
            case _ if path.startswith("/v1/models"):
                await connection.answer(json.dumps({"data": self.models}).encode())
            case _ if path.endswith("/messages"):
                await connection.answer(json.dumps(_MESSAGE).encode())
            case _:
                await connection.answer(json.dumps(_COMPLETION).encode())


class FakeProviders:
    """Starts fake providers, which run until the end of the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

    async def start(self) -> FakeProvider:
        fake = FakeProvider()
        server = await self._stack.enter_async_context(upstream(fake.behave))
        fake.url, fake.requests = server.url, server.requests
        return fake


@pytest.fixture
async def fake_providers() -> AsyncIterator[FakeProviders]:
    async with AsyncExitStack() as stack:
        yield FakeProviders(stack)


@pytest.fixture
async def fake(fake_providers: FakeProviders) -> FakeProvider:
    return await fake_providers.start()
