"""What budgets add to a request: the whole engine over a provider that answers at once, without budgets and with four
of them (dollars, requests, tokens; of the organization and of the user), leases from a real PostgreSQL.

    .venv/bin/python -m bench.budgets

CPU time, both in turn; the least of the rounds. Exit status 1 above the goal.
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
from tests.support.engine import TENANT, USER, HeldEngine, completion

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import embedded
from gatehouse.foundation.storage.database import Database
from gatehouse.platform import installation
from gatehouse.platform.spending.spender import Spender
from gatehouse.policy.budgets import BudgetRecord

ROUNDS = 14
#: microseconds, cost routing included
GOAL = 25.0
BUDGETS = (
    BudgetRecord(id=new_id(), scope_type="tenant", scope_id=TENANT, period="month", limit_usd=Decimal(10**6)),
    BudgetRecord(id=new_id(), scope_type="tenant", scope_id=TENANT, period="day", limit_tokens=10**12),
    BudgetRecord(id=new_id(), scope_type="user", scope_id=USER, period="day", limit_requests=10**9),
    BudgetRecord(id=new_id(), scope_type="user", scope_id=USER, period="minute", limit_tokens=10**12),
)


async def engine(spender: Spender | None, budgets: tuple[BudgetRecord, ...] = ()) -> HeldEngine:
    held = HeldEngine(RATE_LIMIT_REQUESTS_PER_MINUTE="100000000")
    held.serve("one", "m")
    held.flags = {"dlp_enabled": False}
    held.budgets = budgets
    if spender is not None:
        held.ports.spend = spender
    return await settled(held)


async def measured(url: str) -> float:
    database = Database(url, pool_size=2)
    spender = Spender(database, SYSTEM_CLOCK)
    await spender.start(uuid4())
    try:
        engines = [await engine(None), await engine(spender, BUDGETS[:1]), await engine(spender, BUDGETS)]
        body = {"model": "one/m", "messages": [{"role": "user", "content": "How deep is the sea? " * 40}]}
        raw, answer = engines[0].request(body).body, completion("Deep. " * 100)
        rounds = [[await cost(held, raw, answer) for held in engines] for _ in range(ROUNDS)]
    finally:
        await spender.stop()
        await database.close()
    without, one, four = (min(costs) for costs in zip(*rounds, strict=True))
    print(
        f"no budgets {without:.0f} us a request; one in dollars {one - without:.1f} us more, four {four - without:.1f}"
        f" (goal with cost routing: at most {GOAL:.0f})"
    )
    return one - without


def main() -> int:
    home = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    try:
        installed = installation.connect(Settings.from_environment({"GATEHOUSE_HOME": str(home)}))
        installation.prepare(installed)
        with psycopg.connect(installed.owner_url, autocommit=True) as owner:
            owner.execute("INSERT INTO tenants (id, slug, name) VALUES (%s, 'bench', 'bench')", [TENANT])
        return int(asyncio.run(measured(installed.url)) > GOAL)
    finally:
        embedded.stop(home)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
