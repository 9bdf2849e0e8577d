"""Measures the speed of forwarding audit events in one process, the effect of a receiver that does not answer, and the
cost of idle organizations.

    .venv/bin/python -m bench.siem

The events are in the audit chain of a real PostgreSQL. This process forwards them like `gatehouse worker`, over HTTPS
to a collector in a separate process. The output has one line for each run. In `one`, a single organization sends one
batch at a time. In `many`, 100 organizations send. In `many, one receiver does not answer`, the receiver of one of the
100 organizations does not answer. In `idle`, 1,000 organizations have no waiting events.
"""

import asyncio
import multiprocessing
import shutil
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from bench.webhooks import receive
from tests.support.receiver import HERE

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import embedded
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.installation import setup
from gatehouse.platform.operations.siem import queue
from gatehouse.platform.operations.siem.forwarding import Forwarding
from gatehouse.platform.operations.siem.sending import secret_context

EVENTS = 50_000
TENANTS = 100
IDLE = 1_000
ROUNDS = 3


class Bench:
    def __init__(self, owner: psycopg.Connection[Any], tools: Tools, port: int) -> None:
        self._owner, self._tools, self._port = owner, tools, port

    def create_tenants(self, count: int, events: int, *, silent: int = 0) -> list[UUID]:
        """Create `count` organizations that forward audit events. Each has `events` events that wait to be forwarded.
        The receivers of the first `silent` organizations do not answer."""
        tenants = [new_id() for _ in range(count)]
        self._owner.execute("UPDATE siem_targets SET enabled = false")
        for n, tenant in enumerate(tenants):
            self._owner.execute(
                "INSERT INTO tenants (id, slug, name, feature_flags)"
                " VALUES (%s, %s, 'bench', '{\"audit_log_streaming\": true}')",
                [tenant, str(tenant)],
            )
            url = f"https://localhost:{self._port}/{'dead' if n < silent else 'alive'}"
            sealed = self._tools.sealer.seal(b"a-token", context=secret_context(tenant))
            self._owner.execute(
                "INSERT INTO siem_targets (tenant_id, type, enabled, url, sealed_secret)"
                " VALUES (%s, 'hec', true, %s, %s)",
                [tenant, url, sealed],
            )
        self._owner.execute(
            "INSERT INTO siem_cursors (tenant_id, sequence) SELECT t, 0 FROM unnest(%s::uuid[]) t", [tenants]
        )
        self._owner.execute(
            "INSERT INTO audit_heads (tenant_id, sequence) SELECT t, %s FROM unnest(%s::uuid[]) t", [events, tenants]
        )
        self._owner.execute(
            "INSERT INTO audit_events (tenant_id, sequence, id, timestamp, actor_id, actor_type, action, request_id,"
            " ip, outcome, target_provider, target_model, details, personal_digest, prev_hash, hash)"
            " SELECT t, n, gen_random_uuid(), now(), gen_random_uuid()::text, 'api_key', 'gateway.request',"
            " gen_random_uuid()::text, '203.0.113.7', 'success', 'openai', 'gpt-5',"
            ' \'{"path": "/v1/chat/completions", "model": "openai/gpt-5", "status": 200, "stream": false,'
            ' "input_tokens": 812, "output_tokens": 133, "cost_usd": "0.00234"}\','
            " sha256('x'), sha256('y'), sha256('z') FROM unnest(%s::uuid[]) t, generate_series(1, %s) n",
            [tenants, events],
        )
        self._owner.execute("VACUUM ANALYZE")
        return tenants

    async def drain(self, tenants: list[UUID]) -> tuple[float, float]:
        """Return the seconds and the CPU seconds until all events of the organizations have been forwarded."""
        began, cpu = time.monotonic(), time.process_time()
        forwarding = asyncio.create_task(Forwarding(self._tools).run())
        while await asyncio.to_thread(self._has_waiting_events, tenants):
            await asyncio.sleep(0.02)
        seconds, used = time.monotonic() - began, time.process_time() - cpu
        forwarding.cancel()
        await asyncio.gather(forwarding, return_exceptions=True)
        return seconds, used

    async def idle_search_milliseconds(self) -> float:
        """Return the median duration, in milliseconds, of a search that finds no waiting events."""
        durations = []
        for _ in range(50):
            async with self._tools.database.at_once() as connection:
                began = time.monotonic()
                assert await queue.take(connection, 32) == []
                durations.append(time.monotonic() - began)
        return sorted(durations)[len(durations) // 2] * 1000

    def _has_waiting_events(self, tenants: list[UUID]) -> bool:
        query = (
            "SELECT EXISTS (SELECT FROM siem_cursors c JOIN audit_heads h USING (tenant_id)"
            " WHERE h.sequence > c.sequence AND c.tenant_id = ANY(%s))"
        )
        row = self._owner.execute(query, [tenants]).fetchone()
        assert row is not None
        return bool(row[0])


async def run_measurements(url: str, owner: psycopg.Connection[Any], port: int, authority: str) -> None:
    database, outbound = Database(url, pool_size=2), AiohttpOutbound(1)
    receivers = Receivers(EgressGuard(HERE), tls=ssl.create_default_context(cafile=authority))
    tools = Tools(
        settings=Settings(), database=database, sealer=Sealer({"k": bytes(32)}, "k"), outbound=outbound,
        clock=SYSTEM_CLOCK, receivers=receivers,
    )  # fmt: skip
    bench = Bench(owner, tools, port)
    try:
        for name, count, silent in (
            ("one", 1, 0),
            ("many", TENANTS, 0),
            ("many, one receiver does not answer", TENANTS, 1),
        ):
            figures = []
            for _ in range(ROUNDS):
                tenants = bench.create_tenants(count, EVENTS // count, silent=silent)
                seconds, cpu = await bench.drain(tenants[silent:])
                events = EVENTS // count * (count - silent)
                figures.append((events / seconds, cpu / events * 1e6))
            rate, cost = max(figures)
            rounds = " ".join(f"{item:.0f}" for item, _ in figures)
            print(f"{name}: {rate:.0f} events/s (rounds: {rounds}), {cost:.0f} us of CPU per event")
        bench.create_tenants(IDLE, 0)
        milliseconds = await bench.idle_search_milliseconds()
        print(
            f"{IDLE} idle organizations: a poll for waiting events takes {milliseconds:.1f} ms;"
            " a worker polls twice per second"
        )
    finally:
        await receivers.close()
        await outbound.close()
        await database.close()


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    parent_end, child_end = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=receive, args=(child_end,), daemon=True)
    receiver.start()
    try:
        installed = setup.connect(Settings.from_environment({"GATEHOUSE_HOME": str(home)}))
        setup.prepare(installed)
        with psycopg.connect(installed.owner_url, autocommit=True) as owner:
            asyncio.run(run_measurements(installed.url, owner, *parent_end.recv()))
    finally:
        receiver.terminate()
        embedded.stop(home)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
