"""Measures the CPU time that cost routing and budgets add to a request.

    .venv/bin/python -m bench.budgets

The complete engine runs over a provider that answers at once. It is measured with a routing policy (a named model, two
fallbacks, a cost cap), with a budget in dollars, with four budgets (dollars, requests and tokens; of the organization
and of the user), and with routing and budgets together. Leases come from a real PostgreSQL. The variants take turns,
and the minimum of the rounds is reported. The exit status is 1 if the goal is exceeded.
"""

import asyncio
import shutil
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import psycopg
from bench.engine import cost, settled
from tests.support.engine import TENANT, USER, EngineHarness, completion

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import embedded
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.installation import setup
from gatehouse.platform.spending.spender import Spender
from gatehouse.policy.budgets import BudgetRecord
from gatehouse.policy.catalog import ChainEntry, CostCap, RoutingPolicyRecord

ROUNDS = 100
#: microseconds per request for cost routing and one budget
GOAL = 25.0
BUDGETS = (
    BudgetRecord(id=new_id(), scope_type="tenant", scope_id=TENANT, period="month", limit_usd=Decimal(10**6)),
    BudgetRecord(id=new_id(), scope_type="tenant", scope_id=TENANT, period="day", limit_tokens=10**12),
    BudgetRecord(id=new_id(), scope_type="user", scope_id=USER, period="day", limit_requests=10**9),
    BudgetRecord(id=new_id(), scope_type="user", scope_id=USER, period="minute", limit_tokens=10**12),
)


POLICY = RoutingPolicyRecord(
    id=new_id(), name="p", strategy="cost_optimized",
    fallback_chain=tuple(ChainEntry(provider=name, model_id="m") for name in ("one", "two", "three")),
    cost_cap=CostCap(max_cost_per_request_usd=Decimal(1), action_on_exceed="block"), latency_budget_ms=5_000,
)  # fmt: skip


async def engine(
    spender: Spender | None, budgets: tuple[BudgetRecord, ...] = (), policies: tuple[RoutingPolicyRecord, ...] = ()
) -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="100000000")
    for name in ("one", "two", "three"):
        harness.serve(name, "m")
    harness.routing_policies = policies
    harness.flags = {"dlp_enabled": False}
    harness.budgets = budgets
    if spender is not None:
        harness.ports.spend = spender
    return await settled(harness)


async def measured(url: str) -> float:
    database = Database(url, pool_size=2)
    spender = Spender(database, SYSTEM_CLOCK)
    await spender.start(uuid4())
    try:
        engines = [
            await engine(None),
            await engine(spender, BUDGETS[:1]),
            await engine(spender, BUDGETS),
            await engine(None, (), (POLICY,)),
            await engine(spender, BUDGETS[:1], (POLICY,)),
            await engine(spender, BUDGETS, (POLICY,)),
        ]
        body = {"model": "one/m", "messages": [{"role": "user", "content": "How deep is the sea? " * 40}]}
        raw, answer = engines[0].request(body).body, completion("Deep. " * 100)
        rounds = [[await cost(engine, raw, answer) for engine in engines] for _ in range(ROUNDS)]
    finally:
        await spender.stop()
        await database.close()
    without, *more = (min(costs) for costs in zip(*rounds, strict=True))
    one, four, routed, both, all_four = (costs - without for costs in more)
    print(f"neither {without:.0f} us per request; additional: one budget in dollars {one:.1f} us, four {four:.1f}")
    print(f"cost routing {routed:.1f}; with one budget {both:.1f} (goal: at most {GOAL:.0f}), with four {all_four:.1f}")
    return both


def main() -> int:
    home = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    try:
        installed = setup.connect(Settings.from_environment({"GATEHOUSE_HOME": str(home)}))
        setup.prepare(installed)
        with psycopg.connect(installed.owner_url, autocommit=True) as owner:
            owner.execute("INSERT INTO tenants (id, slug, name) VALUES (%s, 'bench', 'bench')", [TENANT])
        return int(asyncio.run(measured(installed.url)) > GOAL)
    finally:
        embedded.stop(home)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
