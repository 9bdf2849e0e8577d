"""After the 200 nothing more (decisions 7, Kill switch): four workers under load, and a provider that notes when first
bytes arrive. The load waits in retries, in fallback chains and for connections, of which there are few."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from tests.support.arrivals import Arrivals, arrivals
from tests.support.load import chat, load
from tests.support.server import GatehouseServer

SWITCH = "/api/v1/admin/kill-switch"
#: seconds in which a late first byte would show
AFTERWARDS = 0.6


@pytest.fixture(scope="module")
def provider() -> Iterator[Arrivals]:
    with arrivals() as running:
        yield running


@pytest.fixture(scope="module")
def server(provider: Arrivals) -> Iterator[GatehouseServer]:
    with GatehouseServer(workers=4, env={"PROVIDER_MAX_CONNECTIONS": "4"}) as running:
        running.add_provider("up", provider.url, ["steady", "other-steady"], max_retries=2)
        running.add_provider("shaky", provider.url, ["flaky"], max_retries=5)
        running.add_provider("down", provider.url, ["failing"], max_retries=1)
        yield running


@pytest.fixture
async def admin(server: GatehouseServer) -> AsyncIterator[httpx2.AsyncClient]:
    # No connection is kept: a stopped worker could have it.
    limits = httpx2.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, limits=limits, timeout=30) as client:
        yield client


async def told(client: httpx2.AsyncClient, method: str, path: str, body: Any = None) -> tuple[float, dict[str, Any]]:
    """The moment at which the answer was here, and the answer."""
    answer = await client.request(method, path, json=body)
    moment = time.time()
    assert answer.status_code in {200, 204}, answer.text
    return moment, answer.json() if answer.content else {}


def all_sorts(key: str, *, tag: str | None = None) -> list[tuple[int, str, dict[str, Any]]]:
    return [
        (60, key, chat("up/steady", tag=tag)),
        (20, key, chat("shaky/flaky", tag=tag)),
        (20, key, chat("down/failing", "up/steady", tag=tag)),
    ]


async def test_after_a_models_kill_switch_no_first_byte_reaches_the_provider(
    server: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    (model_id,) = server.sql("SELECT id FROM model_configs WHERE provider = 'up' AND model_id = 'steady'")[0]
    async with load(server.url, *all_sorts(server.key), (5, server.key, chat("up/other-steady"))) as callers:
        for _ in range(4):
            await callers.until(300)
            moment, answer = await told(admin, "POST", f"{SWITCH}/models/{model_id}/disable", {"reason": "other"})
            assert answer["propagation"]["pending"] == []
            assert answer["propagation"]["confirmed"] == 4
            await asyncio.sleep(AFTERWARDS)
            seen = provider.all()
            assert [one for one in seen if one.at > moment and one.model == "steady"] == []
            # The load was real before, and the provider's other model goes on.
            assert len([one for one in seen if moment - 0.5 < one.at < moment and one.model == "steady"]) > 20
            assert [one for one in seen if one.at > moment and one.model == "other-steady"]
            await told(admin, "POST", f"{SWITCH}/models/{model_id}/enable")
    assert set(callers.statuses) <= {200, 502, 503}
    assert callers.statuses[503] > 0


async def test_after_a_providers_kill_switch_retries_stop_too(
    server: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    async with load(server.url, (80, server.key, chat("shaky/flaky"))) as callers:
        for _ in range(3):
            await callers.until(200)
            moment, answer = await told(admin, "POST", f"{SWITCH}/providers/shaky/disable", {"reason": "cost_runaway"})
            assert (answer["kill_switch_active"], answer["propagation"]["pending"]) == (True, [])
            await asyncio.sleep(AFTERWARDS)
            assert provider.after(moment, model="flaky") == []
            await told(admin, "POST", f"{SWITCH}/providers/shaky/enable")


async def test_a_stopped_worker_is_pending_and_sends_nothing_when_it_comes_back(
    server: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    async with load(server.url, *all_sorts(server.key)) as callers:
        for worker in server.workers[:2]:
            await callers.until(200)
            worker.suspend()
            try:
                moment, answer = await told(admin, "POST", f"{SWITCH}/providers/up/disable", {"reason": "other"})
                assert [name.rpartition("-")[2] for name in answer["propagation"]["pending"]] == [str(worker.pid)]
                assert (answer["propagation"]["confirmed"], answer["propagation"]["total"]) == (3, 4)
                assert 2000 <= answer["propagation"]["elapsed_ms"] < 4000
                _, report = await told(admin, "GET", f"{SWITCH}/propagation")
                assert report["changes"][0]["pending"] == answer["propagation"]["pending"]
            finally:
                worker.resume()
            await asyncio.sleep(1.5)
            assert provider.after(moment, model="steady") == []
            _, report = await told(admin, "GET", f"{SWITCH}/propagation")
            assert report["changes"][0]["pending"] == []
            await told(admin, "POST", f"{SWITCH}/providers/up/enable")


async def test_a_worker_that_dies_is_not_waited_for(server: GatehouseServer, admin: httpx2.AsyncClient) -> None:
    before = {worker.pid for worker in server.workers}
    server.workers[0].kill()
    deadline = time.monotonic() + 20
    while len({worker.pid for worker in server.workers} - before) < 1 or _confirming(server) < 4:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    _, answer = await told(admin, "POST", f"{SWITCH}/providers/down/disable", {"reason": "other"})
    assert (answer["propagation"]["confirmed"], answer["propagation"]["total"]) == (4, 4)
    await told(admin, "POST", f"{SWITCH}/providers/down/enable")


def _confirming(server: GatehouseServer) -> int:
    alive = [worker.pid for worker in server.workers]
    return int(server.sql("SELECT count(*) FROM nodes WHERE pid = ANY(%s)", [alive])[0][0])


async def test_after_a_keys_revocation_nothing_of_it_reaches_the_provider(
    server: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    key = server.new_key()
    path = f"/api/admin/api-keys/{server.key_id(key)}"
    mine, others = all_sorts(key, tag="revoked"), all_sorts(server.key, tag="staying")[:1]
    async with load(server.url, *mine, *others) as callers:
        for _ in range(3):
            await callers.until(300)
            moment, _ = await told(admin, "PATCH", path, {"is_enabled": False})
            await asyncio.sleep(AFTERWARDS)
            seen = provider.all()
            assert [one for one in seen if one.at > moment and one.tag == "revoked"] == []
            assert [one for one in seen if moment - 0.5 < one.at < moment and one.tag == "revoked"]
            assert [one for one in seen if one.at > moment and one.tag == "staying"]
            await told(admin, "PATCH", path, {"is_enabled": True})
    assert callers.statuses[401] > 0


async def test_a_kill_switch_survives_a_restart(server: GatehouseServer, admin: httpx2.AsyncClient) -> None:
    await told(admin, "POST", f"{SWITCH}/providers/up/disable", {"reason": "maintenance"})
    server.kill()
    server.start()
    answer = await admin.post("/v1/chat/completions", json=chat("up/steady"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "provider_unavailable")
    _, summaries = await told(admin, "GET", f"{SWITCH}/providers")
    assert [one["provider"] for one in summaries if one["kill_switch_active"]] == ["up"]  # type: ignore[index]
    await told(admin, "POST", f"{SWITCH}/providers/up/enable")
