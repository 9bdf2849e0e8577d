"""A gateway process: clients that disconnect at any time, and SIGTERM during a stream."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.support.server import GatehouseServer
from tests.support.upstream import Connection, Upstream, upstream

#: Longer than the text that a stream holds back, so that each event sends text to the client.
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"word ' + b"and so on, " * 20 + b'"}}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


async def drip(connection: Connection) -> None:
    """Send a stream that takes two seconds."""
    await connection.begin_stream()
    for _ in range(20):
        await connection.chunk(EVENT)
        await asyncio.sleep(0.1)
    await connection.chunk(END)
    await connection.end_stream()


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[Upstream]:
    async with upstream(drip) as running:
        yield running


@asynccontextmanager
async def serving(provider: Upstream, **env: str) -> AsyncIterator[GatehouseServer]:
    running = GatehouseServer(env=env)
    try:
        await asyncio.to_thread(running.start)
        await asyncio.to_thread(
            running.add_provider, "drip", f"{provider.url}/v1", ["m"], max_retries=0, timeout_ms=10_000
        )
        yield running
    finally:
        await asyncio.to_thread(running.close)


@pytest.fixture(scope="module")
async def server(provider: Upstream) -> AsyncIterator[GatehouseServer]:
    async with serving(provider) as running:
        yield running


def request(server: GatehouseServer, name: str) -> bytes:
    body = json.dumps({"model": "drip/m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
    return f"{head}X-Request-Id: {name}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def calls(provider: Upstream) -> int:
    """Return the number of model calls. The keeper also sends health checks."""
    return sum(connection.head.startswith("POST") for connection in provider.requests)


async def connect(server: GatehouseServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))


async def records(server: GatehouseServer, name: str) -> list[str]:
    """Wait for a usage record and return the statuses of all records."""
    for _ in range(100):
        rows = await asyncio.to_thread(
            server.sql, "SELECT status, dlp_action FROM usage_records WHERE request_id = %s", [name]
        )
        if rows:
            assert all(row[1] == "ALLOW" for row in rows), "the call was inspected, and nothing was found"
            return [row[0] for row in rows]
        await asyncio.sleep(0.05)
    return []


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.01, 0.3])
async def test_a_disconnect_at_any_time_ends_the_call_and_is_recorded_once(
    server: GatehouseServer, provider: Upstream, delay: float
) -> None:
    before, name = calls(provider), f"left-after-{delay}"
    provider.closed_by_client.clear()
    _, writer = await connect(server)
    writer.write(request(server, name))
    await asyncio.sleep(delay)
    writer.transport.abort()
    await asyncio.sleep(0.2)
    if calls(provider) > before:
        await asyncio.wait_for(provider.closed_by_client.wait(), 1)
        assert await records(server, name) == ["cancelled"]


async def test_a_running_stream_is_completed_after_sigterm(server: GatehouseServer) -> None:
    reader, writer = await connect(server)
    idle_reader, idle_writer = await connect(server)
    writer.write(request(server, "drained"))
    await reader.readuntil(b"word")
    (worker,) = server.workers
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(idle_reader.read(), 1) == b"", "who asks nothing is let go at once"
    text = await asyncio.wait_for(reader.read(), 10)
    assert text.count(b"word") == 19
    assert text.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert await records(server, "drained") == ["success"]
    for end in (writer, idle_writer):
        end.close()


async def test_calls_that_last_longer_than_drain_seconds_are_aborted_and_recorded(provider: Upstream) -> None:
    async with serving(provider, DRAIN_SECONDS="1") as server:
        reader, writer = await connect(server)
        writer.write(request(server, "cut-off"))
        await reader.readuntil(b"word")
        (worker,) = server.workers
        start = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        text = await asyncio.wait_for(reader.read(), 10)
        # Without the setting, the wait would be 30 seconds.
        assert 0.9 < time.monotonic() - start < 8
        assert b"word" in text
        assert b"[DONE]" not in text
        assert await records(server, "cut-off") == ["cancelled"]
        writer.close()
        # The end of the whole server includes the wait too.
        reader, writer = await connect(server)
        writer.write(request(server, "cut-off-again"))
        await reader.readuntil(b"word")
        start = time.monotonic()
        assert await asyncio.to_thread(server.stop) == 0
        assert 0.9 < time.monotonic() - start < 10
        writer.close()
