"""After the answer of a kill switch, no request reaches the provider (docs/kill-switch.md). Four workers are under
load, and the provider records when the first byte of each request arrives. Requests wait in retries, in fallback chains
and for one of the few connections."""

import asyncio
import time
from typing import Any

import httpx2
from tests.support.arrivals import Arrivals
from tests.support.load import Load, chat, load
from tests.support.server import GatehouseServer

SWITCH = "/api/v1/admin/kill-switch"
#: Seconds in which a late first byte would arrive.
AFTERWARDS = 0.6


async def answered_at(
    client: httpx2.AsyncClient, method: str, path: str, body: Any = None
) -> tuple[float, dict[str, Any]]:
    """Return the time at which the answer arrived, and the answer."""
    answer = await client.request(method, path, json=body)
    moment = time.time()
    assert answer.status_code in {200, 204}, answer.text
    return moment, answer.json() if answer.content else {}


async def under_way(
    callers: Load, provider: Arrivals, answers: int, *, since: float = 0.0, model: str = "", tag: str = ""
) -> None:
    """Wait until the provider gets load, including requests of this kind. A busy worker may have accepted all requests
    of a kind without having sent one."""
    await callers.until(answers)
    async with asyncio.timeout(60):
        while len(provider.after(since, model=model, tag=tag)) <= 20:
            await asyncio.sleep(0.1)


async def arriving(provider: Arrivals, moment: float, *, model: str = "", tag: str = "") -> None:
    """Wait until requests of this kind have arrived so long after `moment` that a late one would have arrived too."""
    await asyncio.sleep(AFTERWARDS)
    async with asyncio.timeout(60):
        while not provider.after(moment, model=model, tag=tag):
            await asyncio.sleep(0.1)


def all_sorts(key: str, *, tag: str | None = None) -> list[tuple[int, str, dict[str, Any]]]:
    return [
        (60, key, chat("up/steady", tag=tag)),
        (20, key, chat("shaky/flaky", tag=tag)),
        (20, key, chat("down/failing", "up/steady", tag=tag)),
    ]


async def test_after_a_models_kill_switch_no_first_byte_reaches_the_provider(
    fleet: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    (model_id,) = fleet.sql("SELECT id FROM model_configs WHERE provider = 'up' AND model_id = 'steady'")[0]
    async with load(fleet.url, *all_sorts(fleet.key), (5, fleet.key, chat("up/other-steady"))) as callers:
        for _ in range(3):
            began = time.time()
            await under_way(callers, provider, 300, since=began, model="steady")
            moment, answer = await answered_at(
                admin, "POST", f"{SWITCH}/models/{model_id}/disable", {"reason": "other"}
            )
            assert answer["propagation"]["pending"] == []
            assert answer["propagation"]["confirmed"] == 4
            # The provider's second model still answers.
            await arriving(provider, moment, model="other-steady")
            arrival_times = [one.at for one in provider.all() if one.model == "steady" and one.at > began]
            assert max(arrival_times) <= moment
            await answered_at(admin, "POST", f"{SWITCH}/models/{model_id}/enable")
    assert set(callers.statuses) <= {200, 502, 503}
    assert callers.statuses[503] > 0


async def test_after_a_providers_kill_switch_retries_stop_too(
    fleet: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    async with load(fleet.url, (80, fleet.key, chat("shaky/flaky"))) as callers:
        for _ in range(3):
            await under_way(callers, provider, 200, since=time.time(), model="flaky")
            moment, answer = await answered_at(
                admin, "POST", f"{SWITCH}/providers/shaky/disable", {"reason": "cost_runaway"}
            )
            assert (answer["kill_switch_active"], answer["propagation"]["pending"]) == (True, [])
            await asyncio.sleep(AFTERWARDS)
            assert provider.after(moment, model="flaky") == []
            await answered_at(admin, "POST", f"{SWITCH}/providers/shaky/enable")


async def test_a_stopped_worker_is_pending_and_sends_nothing_when_it_comes_back(
    fleet: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    async with load(fleet.url, *all_sorts(fleet.key)) as callers:
        for worker in fleet.workers[:2]:
            await callers.until(200)
            worker.suspend()
            try:
                moment, answer = await answered_at(admin, "POST", f"{SWITCH}/providers/up/disable", {"reason": "other"})
                assert [name.rpartition("-")[2] for name in answer["propagation"]["pending"]] == [str(worker.pid)]
                assert (answer["propagation"]["confirmed"], answer["propagation"]["total"]) == (3, 4)
                assert 2000 <= answer["propagation"]["elapsed_ms"] < 10_000
                _, report = await answered_at(admin, "GET", f"{SWITCH}/propagation")
                assert report["changes"][0]["pending"] == answer["propagation"]["pending"]
            finally:
                worker.resume()
            await asyncio.sleep(1.5)
            assert provider.after(moment, model="steady") == []
            _, report = await answered_at(admin, "GET", f"{SWITCH}/propagation")
            assert report["changes"][0]["pending"] == []
            await answered_at(admin, "POST", f"{SWITCH}/providers/up/enable")


async def test_a_worker_that_dies_is_not_waited_for(fleet: GatehouseServer, admin: httpx2.AsyncClient) -> None:
    before = {worker.pid for worker in fleet.workers}
    fleet.workers[0].kill()
    deadline = time.monotonic() + 60
    while len({worker.pid for worker in fleet.workers} - before) < 1 or _confirming(fleet) < 4:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    _, answer = await answered_at(admin, "POST", f"{SWITCH}/providers/down/disable", {"reason": "other"})
    assert (answer["propagation"]["confirmed"], answer["propagation"]["total"]) == (4, 4)
    await answered_at(admin, "POST", f"{SWITCH}/providers/down/enable")


def _confirming(fleet: GatehouseServer) -> int:
    alive = [worker.pid for worker in fleet.workers]
    return int(fleet.sql("SELECT count(*) FROM nodes WHERE pid = ANY(%s)", [alive])[0][0])


async def test_after_a_keys_revocation_none_of_its_requests_reach_the_provider(
    fleet: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    key = fleet.new_key()
    path = f"/api/admin/api-keys/{fleet.key_id(key)}"
    mine, other_load = all_sorts(key, tag="revoked"), all_sorts(fleet.key, tag="staying")[:1]
    async with load(fleet.url, *mine, *other_load) as callers:
        for _ in range(2):
            began = time.time()
            await under_way(callers, provider, 300, since=began, tag="revoked")
            moment, _ = await answered_at(admin, "PATCH", path, {"is_enabled": False})
            await arriving(provider, moment, tag="staying")
            arrival_times = [one.at for one in provider.all() if one.tag == "revoked" and one.at > began]
            assert max(arrival_times) <= moment
            await answered_at(admin, "PATCH", path, {"is_enabled": True})
    assert callers.statuses[401] > 0


async def test_after_a_clients_disabling_and_deletion_none_of_its_requests_reach_the_provider(
    fleet: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    base = "/api/admin/oauth-clients"
    for verb, body in [("PUT", {"enabled": False}), ("DELETE", None)]:
        expected = {"name": "a machine", "scopes": ["chat:write"], "rate_limit_tier": "unlimited"}
        oauth_client = (await admin.post(base, json=expected)).json()
        form = {name: oauth_client[name] for name in ("client_id", "client_secret")}
        token = (await admin.post("/oauth/token", data={"grant_type": "client_credentials", **form})).json()
        path = f"{base}/{oauth_client['client_id']}"
        await _nothing_more(fleet, provider, admin, token["access_token"], (verb, path, body))


async def test_after_a_users_deletion_none_of_their_requests_reach_the_provider(
    fleet: GatehouseServer, provider: Arrivals, admin: httpx2.AsyncClient
) -> None:
    for verb, body in [("PATCH", {"is_active": False}), ("DELETE", None)]:
        key = fleet.new_key()
        ((user_id,),) = fleet.sql("SELECT user_id FROM api_keys WHERE id = %s", [fleet.key_id(key)])
        await _nothing_more(fleet, provider, admin, key, (verb, f"/api/admin/users/{user_id}", body))


async def _nothing_more(
    fleet: GatehouseServer,
    provider: Arrivals,
    admin: httpx2.AsyncClient,
    credential: str,
    revocation: tuple[str, str, Any],
) -> None:
    """Check that no request of a credential arrives after the response to its revocation, while requests of another
    credential continue to arrive."""
    tag = f"of-{time.monotonic_ns()}"
    async with load(fleet.url, *all_sorts(credential, tag=tag), *all_sorts(fleet.key, tag="staying")[:1]) as callers:
        await under_way(callers, provider, 300, tag=tag)
        moment, _ = await answered_at(admin, *revocation)
        await arriving(provider, moment, tag="staying")
        arrival_times = [one.at for one in provider.all() if one.tag == tag]
        assert max(arrival_times) <= moment
    assert callers.statuses[401] > 0
