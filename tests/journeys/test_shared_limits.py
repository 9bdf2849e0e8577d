"""Two workers without Redis: they share which credentials rest, never exceed a deployment's limit together, and lose no
request while a credential is rotated."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.server import GatehouseServer
from tests.support.upstream import Connection, upstream

COMPLETION = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "small",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "pong"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}  # fmt: skip
FIRST, SECOND, THIRD = "sk-first-4711", "sk-second-4711", "sk-third-4711"


class Vendor:
    """A server that accepts the keys in `valid`. `used` are the keys of the calls, and `most` is the highest number of
    concurrent calls."""

    def __init__(self) -> None:
        self.valid = {FIRST, SECOND, THIRD}
        self.used: list[str] = []
        self.limited: set[str] = set()
        self.running = self.most = 0

    async def behave(self, connection: Connection) -> None:
        if not connection.head.startswith("POST"):
            # The platform checks the health of providers while the tests run.
            await connection.answer(b'{"object": "list", "data": []}')
            return
        key = connection.headers["authorization"].removeprefix("Bearer ")
        self.used.append(key)
        accepted, limited = key in self.valid, key in self.limited
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.02)
        self.running -= 1
        if not accepted:
            await connection.answer(b'{"error": {"message": "Incorrect API key provided."}}', status=401)
        elif limited:
            await connection.answer(b"{}", status=429, more="retry-after: 60\r\n")
        else:
            await connection.answer(json.dumps(COMPLETION).encode())


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer(workers=2) as running:
        running.settled()
        yield running


@pytest.fixture(scope="module")
async def client(server: GatehouseServer) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that keeps no connection, so that each request can reach either worker."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, limits=limits, timeout=60) as running:
        yield running


@pytest.fixture
async def vendor(client: httpx2.AsyncClient, request: pytest.FixtureRequest) -> AsyncIterator[Vendor]:
    """The vendor of a provider that is named as the test."""
    running, name = Vendor(), provider_of(request)
    async with upstream(running.behave) as server:
        credentials = f"/api/admin/providers/{name}/credentials"
        await ok(client, "PUT", credentials, {"base_url": f"{server.url}/v1", "api_key": FIRST})
        await ok(client, "PATCH", f"/api/admin/providers/{name}/config", {"max_retries": 0})
        await ok(client, "POST", "/api/admin/models/catalog/", {"provider": name, "model_id": "small"})
        yield running


def provider_of(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).replace("_", "-")[:40].rstrip("-")


async def ok(client: httpx2.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await client.request(method, path, json=body)
    assert answer.status_code in {200, 201, 204}, answer.text
    return answer.json() if answer.content else None


async def ask(client: httpx2.AsyncClient, model: str) -> int:
    body = {"model": model, "messages": [{"role": "user", "content": "ping"}]}
    return (await client.post("/v1/chat/completions", json=body)).status_code


async def test_a_worker_avoids_a_credential_that_failed_in_the_other(
    server: GatehouseServer, client: httpx2.AsyncClient, vendor: Vendor, request: pytest.FixtureRequest
) -> None:
    name = provider_of(request)
    await ok(client, "POST", f"/api/admin/providers/{name}/credentials", {"label": "second", "api_key": SECOND})
    vendor.limited.add(FIRST)
    one, other = server.workers
    other.suspend()
    try:
        # The first turn is that of the first credential, the second turn that of the second one.
        assert [await ask(client, f"{name}/small") for _ in range(2)] == [200, 200]
    finally:
        other.resume()
    assert vendor.used.count(FIRST) == 1
    one.suspend()
    try:
        assert [await ask(client, f"{name}/small") for _ in range(4)] == [200] * 4
    finally:
        one.resume()
    assert vendor.used.count(FIRST) == 1
    assert vendor.used.count(SECOND) >= 5


async def test_no_request_fails_while_a_credential_is_rotated(
    client: httpx2.AsyncClient, vendor: Vendor, request: pytest.FixtureRequest
) -> None:
    name, statuses = provider_of(request), list[int]()
    path = f"/api/admin/providers/{name}/credentials"
    await ok(client, "POST", path, {"label": "second", "api_key": SECOND})

    async def load() -> None:
        while True:
            statuses.append(await ask(client, f"{name}/small"))

    async def answers(count: int) -> None:
        until = len(statuses) + count
        async with asyncio.timeout(60):
            while len(statuses) < until:
                await asyncio.sleep(0.01)

    clients = [asyncio.create_task(load()) for _ in range(8)]
    try:
        await answers(16)
        await ok(client, "POST", f"{path}/default/rotate", {"api_key": THIRD})
        # The calls that were under way end with the old key.
        await asyncio.sleep(0.2)
        vendor.used.clear()
        await answers(30)
        assert set(vendor.used) == {SECOND, THIRD}
        vendor.valid.remove(FIRST)
        vendor.valid.remove(SECOND)
        await answers(30)
    finally:
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
    assert set(statuses) == {200}


async def test_the_workers_never_exceed_the_limit_of_a_deployment(
    client: httpx2.AsyncClient, vendor: Vendor, request: pytest.FixtureRequest
) -> None:
    name, count = provider_of(request), 0
    loop = asyncio.get_running_loop()

    async def burst(limit: int, calls: int, field: str) -> None:
        nonlocal count
        count += 1
        vendor.used.clear()
        vendor.most = 0
        alias = {
            "name": f"limited-{count}",
            "deployments": [{"provider": name, "model_id": "small", field: limit}],
        }
        await ok(client, "POST", "/api/v1/admin/model-aliases", alias)
        statuses = await asyncio.gather(*(ask(client, alias["name"]) for _ in range(calls)))
        assert set(statuses) <= {200, 429}
        assert statuses.count(200) == len(vendor.used)
        if field == "requests_per_minute":
            assert len(vendor.used) <= limit
        assert vendor.most <= limit

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(1, 9), st.integers(1, 24), st.sampled_from(["requests_per_minute", "max_concurrent_requests"]))
    def property_of_bursts(limit: int, calls: int, field: str) -> None:
        asyncio.run_coroutine_threadsafe(burst(limit, calls, field), loop).result()

    await asyncio.to_thread(property_of_bursts)
