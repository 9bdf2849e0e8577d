"""Runs two workers, the keeper, PostgreSQL and Redis under load, while faults occur at random.

    .venv/bin/python -m bench.soak [--minutes 20] [--seed 1] [--rate 100]

Each of these faults occurs at least once: kill -9 of a worker, of the keeper and of Redis; PostgreSQL stopped for a
while; a provider that only fails; many slow clients. During the complete run, one answer in five of a provider fails or
is interrupted, and one client in fifty disconnects. One worker is never killed, so that its resources can be observed
over the complete run.

The benchmark prints the resources of each process, the latency, and the result of all requests. The exit status is 1 if
one of these checks fails, or if there were too few samples to decide (a run of a few minutes has too few quiet
moments):

- Memory, descriptors and tasks do not grow, in the worker that is never killed, and from one restart to the next in the
  processes that are killed.
- The latency in quiet moments (p50 and p99) does not grow, and no connections or calls are left at the end.
- Each request that was answered, or whose client disconnected, has exactly one record.
- The record of a success has the tokens and the price that the provider reported.
- The spend of a budget and the cost in the analytics are exactly the sum of the records.

Usage that a provider reported but a killed worker could not record is counted and printed. The client of such a request
has received no answer.
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

import httpx2
from bench.rig.soak_judge import fault, latency, within_bounds
from bench.rig.soak_load import PRICES, Load, Provider
from bench.rig.soak_watch import Watch
from tests.support.redis import RedisServer, redis_server
from tests.support.server import GatehouseServer
from tests.support.upstream import upstream

from gatehouse.platform.changes.change import DEFAULT_TENANT

#: seconds between two samples, between two faults, of an outage, and after a fault until a moment counts as quiet
LOOKS, FAULTS, AWAY, QUIET = 2.0, 15.0, 4.0, 10.0
CALLERS = 32


@dataclass
class Site:
    server: GatehouseServer
    redis: RedisServer
    provider: Provider
    load: Load
    spared: int
    #: the kind, the start and the end of each fault
    faults: list[tuple[str, float, float]] = field(default_factory=list)

    def quiet(self, at: float) -> bool:
        """Return whether there is no fault at this time or shortly before it."""
        return not any(began - 1 < at < ended + QUIET for _, began, ended in self.faults)

    async def worker(self) -> None:
        for worker in self.server.workers:
            if worker.pid != self.spared:
                worker.kill()

    async def keeper(self) -> None:
        for keeper in self.server.keepers:
            keeper.kill()

    async def redis_away(self) -> None:
        self.redis.kill()
        await asyncio.sleep(AWAY)
        await asyncio.to_thread(self.redis.start)

    async def database_away(self) -> None:
        await asyncio.to_thread(self.server.stop_database)
        await asyncio.sleep(AWAY)
        await asyncio.to_thread(self.server.start_database)

    async def provider_down(self) -> None:
        self.provider.down = True
        await asyncio.sleep(AWAY)
        self.provider.down = False

    async def slow_clients(self) -> None:
        await self.load.crowd()

    async def all_in_turn(self, until: float, dice: random.Random) -> None:
        kinds: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self.worker, self.keeper, self.redis_away, self.database_away, self.provider_down, self.slow_clients,
        ]  # fmt: skip
        left: list[Callable[[], Coroutine[Any, Any, None]]] = []
        while True:
            left = left or dice.sample(kinds, len(kinds))
            await asyncio.sleep(FAULTS * (0.5 + dice.random()))
            if time.monotonic() > until - FAULTS:
                return
            kind, began = left.pop(), time.monotonic()
            await kind()
            self.faults.append((kind.__name__, began, time.monotonic()))
            print(f"{time.strftime('%H:%M:%S')}  {kind.__name__}", file=sys.stderr, flush=True)


@asynccontextmanager
async def site(rate: float, dice: random.Random) -> AsyncIterator[tuple[Site, UUID, str]]:
    """Start all processes. Yield the site, the id of the caller's budget, and the id of the caller."""
    provider = Provider(dice)
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(redis_server())
        http_settings = {name: os.environ[name] for name in ("INGRESS", "OUTBOUND") if name in os.environ}
        server = stack.enter_context(GatehouseServer(workers=2, env={"REDIS_URL": redis.url, **http_settings}))
        running = await stack.enter_async_context(upstream(provider))
        server.add_provider("chance", f"{running.url}/v1", ["m", "slow"], max_retries=1)
        server.sql(
            "UPDATE model_configs SET cost_per_input_token = %s, cost_per_output_token = %s, max_output_tokens = 200"
            " WHERE provider = 'chance'",
            PRICES,
        )
        server.touch("policy", DEFAULT_TENANT)
        server.settled()
        key = server.new_key()
        ((user_id,),) = server.sql("SELECT user_id FROM api_keys WHERE id = %s", [server.key_id(key)])
        request = {"scope_type": "user", "scope_id": str(user_id), "period": "month"}
        limits = {"limit_usd": 10_000, "limit_tokens": 10**12, "limit_requests": 10**9}
        made = await admin(server, "POST", "/api/admin/budgets", {**request, **limits})
        spared = min(server.workers, key=lambda worker: worker.create_time()).pid
        yield Site(server, redis, provider, Load(server.url, key, dice), spared), user_id, made["id"]


async def admin(server: GatehouseServer, method: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {server.key}", "Connection": "close"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=30) as client:
        answer = await client.request(method, path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json() if "json" in answer.headers["content-type"] else answer.text


async def soak(arguments: argparse.Namespace) -> bool:
    dice = random.Random(arguments.seed)
    async with site(arguments.rate, dice) as (place, user_id, budget_id):
        watch, load = Watch(place.server, place.redis, place.spared), place.load
        began = time.monotonic()
        until = began + arguments.minutes * 60
        callers = [asyncio.create_task(load.caller(CALLERS / arguments.rate)) for _ in range(CALLERS)]
        going_wrong = asyncio.create_task(place.all_in_turn(until, random.Random(arguments.seed)))
        while time.monotonic() < until:
            await asyncio.sleep(LOOKS)
            await asyncio.to_thread(watch.look)
        await going_wrong
        load.ended = True
        await asyncio.gather(*callers)
        good = [flat(watch, place, began), await conserved(place, user_id, budget_id), await left_over(watch, place)]
    return all(good)


def flat(watch: Watch, place: Site, began: float) -> bool:
    """Print the resources of the processes and the latency in quiet moments. Return whether they did not grow."""
    warm = began + 0.2 * (time.monotonic() - began)
    quiet = {role: [e for e in looks if e.at > warm and place.quiet(e.at)] for role, looks in watch.seen.items()}
    good = [within_bounds(quiet)]
    alive = {worker.pid for worker in place.server.workers}
    good += [fault(place.spared not in alive or len(alive) != 2, "a worker is gone")]
    good += [latency([call for call in place.load.latencies if call[0] > began + QUIET and place.quiet(call[0])])]
    return all(good)


async def conserved(place: Site, user_id: UUID, budget_id: str) -> bool:
    load, result = place.load, place.provider.reported_usage
    rows = await drained(place, user_id)
    times = Counter(row[0] for row in rows)
    records = {row[0]: row[1:] for row in rows}
    became = Counter(load.became.values())
    known = [request_id for request_id, what in load.became.items() if what != "broken"]
    lost = [amount for amount in known if amount not in records and load.became[amount] != "left"]
    lost_left = [amount for amount in known if amount not in records and load.became[amount] == "left"]
    twice = [amount for amount, number in times.items() if number > 1]
    unknown = [amount for amount in records if amount not in load.became]
    succeeded = {amount: row for amount, row in records.items() if row[0] == "success"}
    wrong = [amount for amount, row in succeeded.items() if [(row[1], row[2])] != result.get(amount)]
    priced = [amount for amount, row in succeeded.items() if row[3] != row[1] * PRICES[0] + row[2] * PRICES[1]]
    unpaid = [amount for amount, what in load.became.items() if what == "whole" and amount not in succeeded]
    beside = [amount for amount in result if amount not in succeeded]
    statuses = dict(sorted(Counter(row[0] for row in records.values()).items()))
    print(f"\nrequests {len(load.became)}: {dict(became)}; answers {dict(sorted(load.statuses.items()))}")
    print(f"refusals {dict(load.codes)}")
    print(f"records {len(rows)}: {statuses}")
    reported_tokens = [sum(usage[part] for amount in succeeded for usage in result.get(amount, ())) for part in (0, 1)]
    recorded = [sum(row[1 + part] for row in succeeded.values()) for part in (0, 1)]
    print(f"tokens of successes: provider {reported_tokens}, records {recorded}")
    print(
        f"told by the provider and no success on record: {len(beside)}, "
        f"{dict(Counter(f'{load.became[id_]}/{records[id_][0] if id_ in records else None}' for id_ in beside))}"
    )
    spent = (await admin(place.server, "GET", f"/api/admin/budgets/{budget_id}"))["current"]
    sums = (
        sum((row[3] for row in records.values() if row[3] is not None), Decimal(0)),
        sum(row[1] + row[2] + row[4] for row in records.values() if row[3] is not None),
        sum(row[3] is not None for row in records.values()),
    )
    budget = (Decimal(str(spent["spent_usd"])), spent["spent_tokens"], spent["spent_requests"])
    print(f"records' sums {[str(amount) for amount in sums]}, the budget's spend {[str(amount) for amount in budget]}")
    good = True
    for what, actual in {
        "answered and not on record": lost, "left and not on record": lost_left, "on record twice": twice,
        "on record and never asked": unknown, "other tokens than the provider told": wrong,
        "another price than its tokens'": priced, "answered whole and no success": unpaid,
    }.items():  # fmt: skip
        good &= fault(bool(actual), f"{len(actual)} {what}: {actual[:5]}")
    good &= fault(bool(load.codes["quota_exceeded"]), "calls refused, as if the budget were spent")
    broken = [amount for amount in beside if load.became[amount] == "whole"]
    good &= fault(bool(broken), f"{len(broken)} whole answers that were not charged")
    ((cost, requests),) = place.server.sql(
        "SELECT sum(cost_usd), sum(requests) FROM routing_days WHERE tenant_id = %s AND provider = 'chance'",
        [DEFAULT_TENANT],
    )
    print(f"analytics: {cost} USD, {requests} requests")
    good &= fault((cost, requests) != (sums[0], sums[2]), "the analytics' sums are not the records'")
    return good & fault(budget != sums, "the budget's spend is not the sum of the records")


async def drained(place: Site, user_id: UUID) -> list[Any]:
    """Wait until no more records arrive, and return the records of the caller: id, status, input and output tokens,
    price, cached tokens."""
    query = (
        "SELECT request_id, status, coalesce(input_tokens, 0), coalesce(output_tokens, 0), cost_usd,"
        " coalesce(cached_tokens, 0) FROM usage_records WHERE user_id = %s"
    )
    rows: list[Any] = []
    still = 0
    async with asyncio.timeout(180):
        while still < 5:
            await asyncio.sleep(1)
            before = len(rows)
            rows = await asyncio.to_thread(place.server.sql, query, [user_id])
            still = still + 1 if len(rows) == before else 0
    return rows


async def left_over(watch: Watch, place: Site) -> bool:
    clients, calls = 1, 1.0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(30):
            while clients or calls:
                clients = sum(watch.clients(worker) for worker in place.server.workers)
                figures = await admin(place.server, "GET", "/metrics")
                (line,) = (line for line in figures.splitlines() if line.startswith("service_active_model_calls "))
                calls = float(line.split()[1])
                await asyncio.sleep(1)
    print(f"\nleft over: {clients} clients' connections, {calls:.0f} calls; faults: {_faults(place)}")
    return fault(bool(clients or calls), "something is left over")


def _faults(place: Site) -> dict[str, int]:
    return dict(Counter(kind for kind, _, _ in place.faults))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=100, help="requests per second")
    arguments = parser.parse_args()
    os.nice(10)
    return 0 if asyncio.run(soak(arguments)) else 1


if __name__ == "__main__":
    sys.exit(main())
