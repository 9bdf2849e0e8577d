"""Within a minute after a mixture of hostile bodies, a worker needs less than twice its idle memory."""

import asyncio
import base64
import contextlib
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import psutil
import pytest
from tests.support.server import GatehouseServer

pytestmark = pytest.mark.timeout(600)

MODEL: Final = "sandbox/echo"
MIB: Final = 1024**2


@pytest.fixture
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer(imports_anew=True) as running:
        yield running


def chat(content: Any, **more: Any) -> bytes:
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], **more}
    return json.dumps(body, separators=(",", ":")).encode()


def hostile_bodies() -> Iterator[bytes]:
    """Return bodies of up to 10 MiB of different kinds, which need much memory for their size."""
    tools = [{"type": "function", "function": {"name": f"f{n}", "description": "d" * 50}} for n in range(40_000)]
    yield chat("x", metadata=[{} for _ in range(2_500_000)])
    yield chat([{"type": "text", "text": "a"} for _ in range(60_000)])
    yield chat("x", tools=tools)
    yield chat(base64.b64encode(random.Random(1).randbytes(700_000)).decode())
    yield chat("wörd äöü " * 200_000)
    yield chat("mail a@b.co " * 20_000)
    yield b"[" * 100_000 + b"]" * 100_000
    yield chat("x" * 11 * MIB)


def own_bytes(worker: psutil.Process) -> int:
    """Return the worker's proportional set size: pages that it shares with other processes count by its share."""
    return int(worker.memory_full_info().pss)


async def highest(worker: psutil.Process) -> int:
    """Return the largest size until the task is cancelled."""
    size = 0
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            size = max(size, await asyncio.to_thread(own_bytes, worker))
            await asyncio.sleep(0.2)
    return size


async def send(client: httpx2.AsyncClient, body: bytes) -> int | None:
    """Return the status, or None if the client timed out."""
    try:
        return (await client.post("/v1/chat/completions", content=body)).status_code
    except httpx2.HTTPError:
        return None


async def test_a_worker_returns_the_memory_that_hostile_bodies_took(server: GatehouseServer) -> None:
    headers = {"Authorization": f"Bearer {server.new_key()}", "Content-Type": "application/json"}
    [worker] = server.workers
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        assert [await send(client, chat("hello " * 50)) for _ in range(100)] == [200] * 100
        idle = own_bytes(worker)
        watching = asyncio.create_task(highest(worker))
        # The second round starts with the memory that the first one has left.
        for _ in range(2):
            await asyncio.gather(*(send(client, body) for body in hostile_bodies()))
        watching.cancel()
        peak = await watching
        assert await send(client, chat("hello")) == 200
    assert peak > 4 * idle, "the bodies needed too little memory for this test"
    for _ in range(60):
        await asyncio.sleep(1)
        if own_bytes(worker) < 2 * idle:
            break
    # A restarted worker would have little memory too.
    assert server.workers == [worker]
    assert own_bytes(worker) < 2 * idle, f"idle {idle // MIB} MiB, peak {peak // MIB}, now {own_bytes(worker) // MIB}"
