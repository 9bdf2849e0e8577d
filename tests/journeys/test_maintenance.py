"""Maintenance mode with several workers (docs/operations.md): requests in progress on any worker are waited for, new
ones are refused, and a worker that dies meanwhile does not block it."""

import asyncio
import http.client
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx2
import psutil
import pytest
from tests.support.load import chat, load
from tests.support.server import GatehouseServer
from tests.support.upstream import Connection, upstream

PATH = "/api/admin/system/maintenance"
MESSAGE = "Back at noon."
REFUSED = {"error": "maintenance_mode", "message": MESSAGE}
WORKERS = 3
#: Connections that a check opens, so many that every worker gets some.
CONCURRENT_REQUESTS = 40

FIRST = b'data: {"choices":[{"index":0,"delta":{"content":"first "}}]}\n\n'
LAST_EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"last"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
PLAIN = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}'


class OpenCalls:
    """A provider that answers on command, and calls that wait for it."""

    def __init__(self) -> None:
        self.plain, self.streams = asyncio.Event(), asyncio.Event()
        self.calls: dict[bool, list[asyncio.Task[tuple[int, bytes]]]] = {False: [], True: []}

    async def behave(self, connection: Connection) -> None:
        if connection.head.startswith("GET"):
            await connection.answer(b'{"data": []}')
        elif json.loads(connection.body).get("stream"):
            await connection.begin_stream()
            await connection.chunk(FIRST)
            await self.streams.wait()
            await connection.chunk(LAST_EVENT)
            await connection.end_stream()
        else:
            await self.plain.wait()
            await connection.answer(PLAIN)

    @property
    def count(self) -> int:
        return sum(not call.done() for calls in self.calls.values() for call in calls)

    async def on_every_worker(self, server: GatehouseServer) -> None:
        """Wait until each worker has plain and streamed calls in progress, and reports them."""
        for _ in range(20):
            for stream in (False, True):
                self.calls[stream] += [asyncio.create_task(_call(server, stream)) for _ in range(9)]
            # Each worker reports its calls with its next heartbeat.
            await asyncio.sleep(1.2)
            active = in_progress(server)
            assert sum(active.values()) == self.count
            if len(active) == WORKERS and min(active.values()) >= 3:
                return
        raise AssertionError(f"a worker gets no calls: {active}")

    async def results(self) -> Counter[tuple[int, bool]]:
        """Count the calls by status and by whether the answer was complete."""
        result: Counter[tuple[int, bool]] = Counter()
        for stream, end in ((False, b"}"), (True, b"data: [DONE]\n\n")):
            for status, body in await asyncio.wait_for(asyncio.gather(*self.calls[stream]), 20):
                result[status, body.endswith(end)] += 1
        return result


async def _call(server: GatehouseServer, stream: bool) -> tuple[int, bytes]:
    """Return the status, or 0 for a broken connection, and the received part of the body."""
    body, status, read = {**chat("held/m"), "stream": stream}, 0, b""
    connector = aiohttp.TCPConnector(force_close=True)
    headers = {"Authorization": f"Bearer {server.key}"}
    try:
        async with (
            aiohttp.ClientSession(server.url, connector=connector, headers=headers) as session,
            session.post("/v1/chat/completions", json=body) as answer,
        ):
            async for piece in answer.content.iter_any():
                read += piece
            status = answer.status
    except aiohttp.ClientError:
        return 0, read
    return status, read


def in_progress(server: GatehouseServer) -> dict[int, int]:
    """Model calls by worker, as system health shows them to operators."""
    rows = server.sql("SELECT pid, (status ->> 'active')::int FROM nodes WHERE kind = 'gateway'")
    return dict(rows)


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[GatehouseServer]:
    running = GatehouseServer(workers=WORKERS)
    try:
        await asyncio.to_thread(running.start)
        yield running
    finally:
        await asyncio.to_thread(running.close)


@pytest.fixture
async def admin(server: GatehouseServer) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {server.key}"}
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, limits=limits, timeout=90) as client:
        yield client
        await client.post(PATH, json={"enabled": False})


@asynccontextmanager
async def holding(server: GatehouseServer) -> AsyncIterator[OpenCalls]:
    """Yield calls that are in progress on every worker."""
    calls = OpenCalls()
    async with upstream(calls.behave) as provider:
        server.sql("DELETE FROM model_configs WHERE provider = 'held'")
        server.sql("DELETE FROM providers WHERE id = 'held'")
        await asyncio.to_thread(server.add_provider, "held", provider.url, ["m"], max_retries=0, timeout_ms=100_000)
        await calls.on_every_worker(server)
        yield calls
        calls.plain.set()
        calls.streams.set()
        await calls.results()


async def statuses_of_requests(
    admin: httpx2.AsyncClient, method: str, path: str, body: Any = None
) -> Counter[tuple[int, str]]:
    """Count the answers to concurrent requests, each over its own connection."""
    answers = await asyncio.gather(*(admin.request(method, path, json=body) for _ in range(CONCURRENT_REQUESTS)))
    return Counter((answer.status_code, answer.text if answer.status_code != 200 else "") for answer in answers)


async def closed_everywhere(admin: httpx2.AsyncClient) -> None:
    """Return when no worker accepts calls."""
    async with asyncio.timeout(60):
        while {
            status for status, _ in await statuses_of_requests(admin, "POST", "/v1/messages", chat("sandbox/echo"))
        } != {503}:
            await asyncio.sleep(0.05)


async def test_calls_on_every_worker_are_waited_for_and_new_ones_are_refused(
    server: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    async with holding(server) as calls:
        count = calls.count
        body = {"enabled": True, "message": MESSAGE, "drain_timeout_seconds": 60}
        closing = asyncio.create_task(admin.post(PATH, json=body))
        await closed_everywhere(admin)
        for method, path, sent in [
            ("POST", "/v1/chat/completions", chat("sandbox/echo")),
            ("POST", "/v1/chat/completions", {**chat("held/m"), "stream": True}),
            ("GET", "/v1/models", None),
            ("GET", "/api/admin/api-keys", None),
        ]:
            ((status, text),) = await statuses_of_requests(admin, method, path, sent)
            assert (status, json.loads(text)) == (503, REFUSED)
        for status, text in await statuses_of_requests(admin, "GET", "/api/health/ready"):
            # A worker that got no CPU time for some seconds also fails other checks.
            assert (status, "maintenance" in json.loads(text)["failing_checks"]) == (503, True)
        assert await statuses_of_requests(admin, "GET", "/api/health/live") == {(200, ""): CONCURRENT_REQUESTS}
        # All accepted calls continue, and the platform reports them.
        await asyncio.sleep(1.2)
        health = (await admin.get("/api/admin/system/health")).json()
        nodes = [node for node in health["components"]["nodes"]["nodes"] if node["kind"] == "gateway"]
        assert {node["name"].rpartition("-")[2]: node["active"] for node in nodes} == {
            str(pid): active for pid, active in in_progress(server).items()
        }
        assert sum(node["active"] for node in nodes) == count == calls.count
        # Refused clients that retry at once do not prolong the wait for the accepted calls.
        async with load(server.url, (20, server.key, chat("sandbox/echo"))) as callers:
            calls.plain.set()
            await asyncio.sleep(1.5)
            assert calls.count == len(calls.calls[True])
            assert not closing.done(), "streams are under way"
            calls.streams.set()
            released = time.monotonic()
            response_body = (await closing).json()
            assert time.monotonic() - released < 3
            assert calls.count == 0
            await callers.until(20)
        assert set(callers.statuses) == {503}
        assert (response_body["maintenance_enabled"], response_body["message"]) == (True, MESSAGE)
        assert response_body["active_requests_drained"] == count
        assert await calls.results() == {(200, True): count}
        over = (await admin.post(PATH, json={"enabled": False})).json()
        assert (over["maintenance_enabled"], over["active_requests_drained"]) == (False, 0)
    # The answer is sent when every worker serves again.
    for method, path, sent in [
        ("POST", "/v1/chat/completions", chat("sandbox/echo")),
        ("GET", "/api/health/ready", None),
        ("GET", "/api/admin/api-keys", None),
    ]:
        assert await statuses_of_requests(admin, method, path, sent) == {(200, ""): CONCURRENT_REQUESTS}


async def test_maintenance_answers_at_its_timeout_and_running_calls_continue(
    server: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    async with holding(server) as calls:
        count, began = calls.count, time.monotonic()
        body = (await admin.post(PATH, json={"enabled": True, "drain_timeout_seconds": 2})).json()
        assert 2 <= time.monotonic() - began < 5
        assert (body["active_requests_drained"], calls.count) == (0, count)
        calls.plain.set()
        calls.streams.set()
        assert await calls.results() == {(200, True): count}


async def test_a_dead_worker_is_not_waited_for_and_its_replacement_refuses_requests(
    server: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    async with holding(server) as calls:
        count = calls.count
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=90)
        answering = await _answering(server, connection)
        dying = next(worker for worker in server.workers if worker.pid != answering)
        lost = in_progress(server)[dying.pid]
        before = {worker.pid for worker in server.workers}
        closing = asyncio.create_task(asyncio.to_thread(_close, server, connection))
        await closed_everywhere(admin)
        dying.kill()
        # The calls of the other workers are still waited for.
        await asyncio.sleep(3)
        assert not closing.done()
        calls.plain.set()
        calls.streams.set()
        released = time.monotonic()
        result = await closing
        assert time.monotonic() - released < 10
        assert result["active_requests_drained"] == count
        results = await calls.results()
        assert results.pop((200, True)) == count - lost
        # Streams that broke off had begun with a 200.
        assert sum(results.values()) == lost
        assert not any(complete for _, complete in results)
        async with asyncio.timeout(60):
            while len({worker.pid for worker in server.workers} - before) < 1 or len(in_progress(server)) < WORKERS:
                await asyncio.sleep(0.1)
        ((status, _),) = await statuses_of_requests(admin, "POST", "/v1/chat/completions", chat("sandbox/echo"))
        assert status == 503
    await admin.post(PATH, json={"enabled": False})
    assert await statuses_of_requests(admin, "POST", "/v1/chat/completions", chat("sandbox/echo")) == {
        (200, ""): CONCURRENT_REQUESTS
    }


async def _answering(server: GatehouseServer, connection: http.client.HTTPConnection) -> int:
    """Open a connection and return the worker that accepted it."""

    def ask() -> int:
        connection.request("GET", "/health")
        connection.getresponse().read()
        mine = connection.sock.getsockname()
        (result,) = (
            worker.pid
            for worker in server.workers
            for end in psutil.Process(worker.pid).net_connections("tcp")
            if end.raddr and tuple(end.raddr) == mine
        )
        return int(result)

    return await asyncio.to_thread(ask)


def _close(server: GatehouseServer, connection: http.client.HTTPConnection) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
    body = {"enabled": True, "message": MESSAGE, "drain_timeout_seconds": 60}
    connection.request("POST", PATH, json.dumps(body), headers)
    response_body: dict[str, Any] = json.loads(connection.getresponse().read())
    return response_body
