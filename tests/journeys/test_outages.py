"""The database fails under load: the gateway continues, and administration works again after the database is back. Set
`GATEHOUSE_OUTAGE_SECONDS=30` for a longer outage before a release."""

import asyncio
import time

import httpx2
from tests.support.load import chat, load
from tests.support.server import OUTAGE_SECONDS, GatehouseServer

SWITCH = "/api/v1/admin/kill-switch"


async def test_gateway_requests_continue_while_the_database_is_unavailable(
    fleet: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    workers = {worker.pid for worker in fleet.workers}
    async with load(fleet.url, (20, fleet.key, chat("sandbox/echo")), rest_seconds=0.1) as callers:
        await callers.until(200)
        await asyncio.to_thread(fleet.stop_database)
        stopped, answer_count = time.monotonic(), callers.statuses.total()
        refused = await admin.post(f"{SWITCH}/providers/sandbox/disable", json={"reason": "other"})
        # The provider was not disabled, and the answer says so.
        assert refused.status_code == 503
        assert "database" in refused.json()["detail"]
        assert int(refused.headers["Retry-After"]) > 0
        while time.monotonic() - stopped < OUTAGE_SECONDS:
            await callers.until(50, patience=5)
        assert callers.statuses.total() - answer_count > 200
        await asyncio.to_thread(fleet.start_database)
        await _answers(admin)
        await callers.until(200)
    assert set(callers.statuses) == {200}
    assert {worker.pid for worker in fleet.workers} == workers
    # The workers follow changes again: a kill switch is active on all of them.
    await asyncio.to_thread(fleet.settled)
    body = (await admin.post(f"{SWITCH}/providers/sandbox/disable", json={"reason": "other"})).json()
    assert (body["propagation"]["confirmed"], body["propagation"]["pending"]) == (4, [])
    answers = [await admin.post("/v1/chat/completions", json=chat("sandbox/echo")) for _ in range(10)]
    assert {answer.status_code for answer in answers} == {503}
    await admin.post(f"{SWITCH}/providers/sandbox/enable")


async def _answers(admin: httpx2.AsyncClient) -> None:
    deadline = time.monotonic() + 60
    while (await admin.get(f"{SWITCH}/providers")).status_code != 200:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
