"""Workers that lose PostgreSQL while others keep it (docs/kill-switch.md; `SWITCH_FAIL_MODE`).

Three servers over one database: one connects directly, and two through a relay that the test cuts.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple
from uuid import UUID

import httpx2
import pytest
from tests.support.load import chat, load
from tests.support.relay import Relay, relay
from tests.support.server import GatehouseServer

from gatehouse.platform.live.replica.feed import FAIL_CLOSED_AFTER_SECONDS

SWITCH = "/api/v1/admin/kill-switch"
UNKNOWN = {
    "error": {
        "message": "This worker cannot reach the database, and SWITCH_FAIL_MODE forbids requests without it.",
        "type": "service_unavailable",
        "code": "switch_state_unknown",
    }
}


class Site(NamedTuple):
    """`near` connects to the database directly. `open` and `closed` connect through the relay `way`, and have the
    `SWITCH_FAIL_MODE` of their name."""

    near: GatehouseServer
    open: GatehouseServer
    closed: GatehouseServer
    way: Relay


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ExitStack() as stack:
        near = stack.enter_context(GatehouseServer())
        way = stack.enter_context(relay(near.home / "postgres" / ".s.PGSQL.5432"))
        env = {"DATABASE_URL": way.url, "GATEHOUSE_MASTER_KEY": (near.home / "master.key").read_text().strip()}
        env["SANDBOX_ENABLED"] = "true"
        far = [
            stack.enter_context(GatehouseServer(env={**env, "SWITCH_FAIL_MODE": mode})) for mode in ("open", "closed")
        ]
        # Restore the connection in any case, because the databases are searched for secrets at the end.
        stack.callback(way.mend)
        yield Site(near, *far, way)


def model(site: Site, name: str) -> UUID:
    rows = site.near.sql("SELECT id FROM model_configs WHERE provider = 'sandbox' AND model_id = %s", [name])
    return UUID(str(rows[0][0]))


async def ask(client: httpx2.AsyncClient, server: GatehouseServer, name: str = "echo") -> httpx2.Response:
    return await client.post(f"{server.url}/v1/chat/completions", json=chat(f"sandbox/{name}"))


async def within(seconds: float, done: Callable[[httpx2.Response], bool], client: httpx2.AsyncClient, url: str) -> None:
    """Wait until the answer fulfils the condition."""
    async with asyncio.timeout(seconds):
        while not done(await client.get(url)):
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("how", ["refuse", "swallow"])
async def test_a_disconnected_worker_is_pending_and_its_fail_mode_decides_until_it_reconnects(
    site: Site, how: str
) -> None:
    headers = {"Authorization": f"Bearer {site.near.key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
        for server in (site.near, site.open, site.closed):
            assert (await ask(client, server)).status_code == 200
        async with load(site.open.url, (2, site.near.key, chat("sandbox/echo")), rest_seconds=0.05) as callers:
            getattr(site.way, how)()
            cut = time.monotonic()
            # A request is delayed at most by one attempt to connect.
            while time.monotonic() - cut < FAIL_CLOSED_AFTER_SECONDS - 2:
                for server in (site.open, site.closed):
                    began = time.monotonic()
                    assert (await ask(client, server)).status_code == 200
                    assert time.monotonic() - began < 3
                await asyncio.sleep(0.2)

            # A kill switch that is engaged now cannot reach these workers, and the answer lists them as pending.
            path = f"{site.near.url}{SWITCH}/models/{model(site, 'echo')}"
            propagation = (await client.post(f"{path}/disable", json={"reason": "other"})).json()["propagation"]
            cut_off = {str(server.workers[0].pid) for server in (site.open, site.closed)}
            assert (propagation["confirmed"], propagation["total"]) == (1, 3)
            assert {name.rpartition("-")[2] for name in propagation["pending"]} == cut_off
            assert 2000 <= propagation["elapsed_ms"] < 10_000

            await asyncio.sleep(max(0.0, cut + FAIL_CLOSED_AFTER_SECONDS + 1 - time.monotonic()))
            assert (await ask(client, site.near)).status_code == 503
            assert (await ask(client, site.open)).status_code == 200
            refused = await ask(client, site.closed)
            assert (refused.status_code, refused.json()) == (503, UNKNOWN)
            assert (await client.get(f"{site.near.url}/api/health/ready")).status_code == 200
            for server in (site.open, site.closed):
                ready = await client.get(f"{server.url}/api/health/ready")
                assert (ready.status_code, ready.json()["failing_checks"]) == (503, ["database"])
                assert (await client.get(f"{server.url}/api/health/live")).status_code == 200
                figures = (await client.get(f"{server.url}/metrics")).text
                (lag,) = (line for line in figures.splitlines() if line.startswith("service_change_feed_lag_seconds "))
                assert float(lag.split()[1]) >= FAIL_CLOSED_AFTER_SECONDS
            assert set(callers.statuses) == {200}

            site.way.mend()
            for server in (site.open, site.closed):
                await within(15, lambda answer: answer.status_code == 200, client, f"{server.url}/api/health/ready")
        # The workers have received the change without a further request, and serve the other models.
        report = (await client.get(f"{site.near.url}{SWITCH}/propagation")).json()
        assert (report["changes"][0]["confirmed"], report["changes"][0]["pending"]) == (3, [])
        for server in (site.open, site.closed):
            assert (await ask(client, server)).json()["error"]["code"] == "provider_unavailable"
            assert (await ask(client, server, "slow-200ms")).status_code == 200
        propagation = (await client.post(f"{path}/enable")).json()["propagation"]
        assert (propagation["confirmed"], propagation["pending"]) == (3, [])
        for server in (site.near, site.open, site.closed):
            assert (await ask(client, server)).status_code == 200
