"""Measures the speed of forwarding audit events in one process, the effect of a receiver that does not answer, and the
cost of idle organizations.

    .venv/bin/python -m bench.siem

The events are in the audit chain of a real PostgreSQL. This process forwards them like `gatehouse worker`, over HTTPS
to a collector in a separate process. The output has one line for each run. In `one`, a single organization sends one
batch at a time. In `many`, 100 organizations send. In `many, one receiver does not answer`, the receiver of one of the
100 organizations does not answer. In `idle`, 1,000 organizations have no waiting events.
"""

import sys
import time
from typing import Any
from uuid import UUID

import psycopg
from bench.rig import receivers

from gatehouse.foundation.ids import new_id
from gatehouse.platform.background.jobs import Tools
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
        return await receivers.time_until(lambda: not self._has_waiting_events(tenants), Forwarding(self._tools).run())

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


async def measure(owner: psycopg.Connection[Any], tools: Tools, port: int) -> None:
    bench = Bench(owner, tools, port)
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
        receivers.print_rate(name, figures)
    bench.create_tenants(IDLE, 0)
    milliseconds = await bench.idle_search_milliseconds()
    print(
        f"{IDLE} idle organizations: a poll for waiting events takes {milliseconds:.1f} ms;"
        " a worker polls twice per second"
    )


if __name__ == "__main__":
    sys.exit(receivers.run(measure))
