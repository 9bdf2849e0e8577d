"""Measures the speed of delivering events in one process, and the effect of a receiver that does not answer.

    .venv/bin/python -m bench.webhooks

The events are in the outbox of a real PostgreSQL. This process reads and delivers them like `gatehouse worker`, over
HTTPS to a receiver in a separate process. In `many`, 100 organizations have one webhook each. In `one`, a
single webhook receives its events one after the other. Then the delivery to 99 webhooks is timed, alternately while a
100th receiver answers and while it does not. The exit status is 1 if a goal is not reached.
"""

import asyncio
import sys
from typing import Any
from uuid import UUID

import psycopg
from bench.rig import receivers

from gatehouse.foundation.ids import new_id
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.changes import outbox
from gatehouse.platform.keeper.duties import OUTBOX_LISTENERS
from gatehouse.platform.operations.webhooks.delivering import Deliveries
from gatehouse.platform.operations.webhooks.sending import secret_context

WEBHOOKS = 100
EVENTS = 10_000
ROUNDS = 8
MIN_EVENTS_PER_SECOND = 1000
#: maximum slowdown of the other webhooks, as a share, if one receiver does not answer
MAX_SLOWDOWN = 0.05


class Bench:
    def __init__(self, owner: psycopg.Connection[Any], tools: Tools, port: int) -> None:
        self._owner, self._tools, self._port = owner, tools, port
        self.tenants: list[UUID] = []

    def replace_webhooks(self, count: int, *, silent: int = 0) -> None:
        """Replace all organizations by `count` organizations with one webhook each. The receivers of the first `silent`
        organizations do not answer."""
        self._owner.execute("DELETE FROM webhooks")
        self._owner.execute("DELETE FROM outbox")
        self.tenants = [new_id() for _ in range(count)]
        for n, tenant in enumerate(self.tenants):
            webhook, path = new_id(), "dead" if n < silent else str(n)
            self._owner.execute("INSERT INTO tenants (id, slug, name) VALUES (%s, %s, 'bench')", [tenant, str(tenant)])
            secret = self._tools.sealer.seal(b"a secret", context=secret_context(tenant, webhook))
            self._owner.execute(
                "INSERT INTO webhooks (id, tenant_id, name, url, events, sealed_secret, enabled)"
                " VALUES (%s, %s, 'x', %s, '{dlp_trigger}', %s, true)",
                [webhook, tenant, f"https://localhost:{self._port}/{path}", secret],
            )

    def announce(self, events: int) -> None:
        """Add `events` events to the outbox in total: the same number for each organization, in alternation."""
        self._owner.execute(
            "INSERT INTO outbox (id, tenant_id, event_type, payload) SELECT gen_random_uuid(), tenant, 'dlp_trigger',"
            " jsonb_build_object('request_id', gen_random_uuid(), 'user_id', gen_random_uuid(), 'rule_id',"
            " gen_random_uuid(), 'entity_type', 'iban', 'action_taken', 'REDACT', 'timestamp', now())"
            " FROM generate_series(1, %s), unnest(%s::uuid[]) AS t (tenant)",
            [events // len(self.tenants), self.tenants],
        )
        self._owner.execute("VACUUM ANALYZE")

    async def drain(self, *, skipped: int = 0) -> tuple[float, float]:
        """Return the elapsed seconds and the CPU seconds of the delivery. The events of the first `skipped`
        organizations are not waited for."""
        is_dispatched = False

        async def deliver() -> None:
            nonlocal is_dispatched
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(Deliveries(self._tools).run())
                while await outbox.dispatch(self._tools.database, OUTBOX_LISTENERS):
                    pass
                is_dispatched = True

        def is_done() -> bool:
            return is_dispatched and not self._has_open_deliveries(self.tenants[skipped:])

        return await receivers.time_until(is_done, deliver())

    def _has_open_deliveries(self, tenants: list[UUID]) -> bool:
        query = (
            "SELECT EXISTS (SELECT FROM webhook_deliveries WHERE next_attempt_at IS NOT NULL AND tenant_id = ANY(%s))"
        )
        row = self._owner.execute(query, [tenants]).fetchone()
        assert row is not None
        return bool(row[0])


async def best_rate(bench: Bench) -> float:
    """Return the higher of the two rates, in events per second."""
    best = 0.0
    for name, webhooks, events in (("many", WEBHOOKS, EVENTS), ("one", 1, EVENTS // 4)):
        figures = []
        for _ in range(3):
            bench.replace_webhooks(webhooks)
            bench.announce(events)
            seconds, cpu = await bench.drain()
            figures.append((events / seconds, cpu / events * 1e6))
        best = max(best, receivers.print_rate(name, figures))
    return best


async def slowdown_by_silent_receiver(bench: Bench) -> float:
    """Return by how much the other deliveries are slowed down, as a share, if one receiver does not answer. It is
    computed from the minimum of the rounds, because other work on the machine only adds time."""
    seconds: dict[int, list[float]] = {0: [], 1: []}
    for n in range(ROUNDS):
        for silent in (0, 1) if n % 2 else (1, 0):
            bench.replace_webhooks(WEBHOOKS, silent=silent)
            bench.announce(EVENTS // 2)
            seconds[silent].append((await bench.drain(skipped=1))[0])
    share = min(seconds[1]) / min(seconds[0]) - 1
    print(
        f"1 of {WEBHOOKS} receivers does not answer: the other deliveries take {share:.1%} longer"
        f" (goal: less than {MAX_SLOWDOWN:.0%})"
    )
    for silent, name in ((0, "all answer"), (1, "one does not answer")):
        print(f"  {name}, seconds: " + " ".join(f"{item:.2f}" for item in seconds[silent]))
    return share


async def measure(owner: psycopg.Connection[Any], tools: Tools, port: int) -> bool:
    bench = Bench(owner, tools, port)
    rate = await best_rate(bench)
    print(f"goal for the higher rate: {MIN_EVENTS_PER_SECOND} events/s")
    return await slowdown_by_silent_receiver(bench) < MAX_SLOWDOWN and rate >= MIN_EVENTS_PER_SECOND


if __name__ == "__main__":
    sys.exit(not receivers.run(measure))
