"""The month of the outpost's own budget: its beginning, and clocks that are set back. The tests use real files and no
process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from gatehouse.foundation.clock import Clock
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.money.budget import (
    BudgetExceeded,
    LocalSpend,
    OutpostBudgetUnavailable,
    own_budget,
)
from gatehouse.outpost.money.leases import Leases
from gatehouse.outpost.money.tally import Tally
from gatehouse.outpost.platform_link.peers import Peers
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.outpost.state import BudgetSet, LocalState
from gatehouse.policy.budgets import Budget, CallAmounts, compile_budget

ID = UUID(int=1)
ONE = CallAmounts(requests=1)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@dataclass
class Hands:
    """A clock that the test sets."""

    time: float

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


@dataclass
class Alone:
    """An outpost without peers, with a budget of 5 requests. `restart` reads its files again."""

    folder: Path
    clock: Hands = field(default_factory=lambda: Hands(at("2026-05-20")))
    spend: LocalSpend = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        clock: Clock = self.clock
        settings = OutpostSettings.from_environment({"OUTPOST_ID": str(ID), "BUDGET_MONTHLY_REQUESTS": "5"})
        self.state = LocalState(self.folder)
        self.leases = Leases(self.folder / "share.json", parts=1)
        self.tally = Tally(self.folder / "spent", clock.now())
        self.spend = LocalSpend(ID, settings, self.state, tally=self.tally, leases=self.leases, clock=clock)
        self.spend.peers = Peers(
            ID, (), proof=None, identity=None, leases=self.leases, spend=self.spend, state=self.state,
            version=lambda: 0, newer=lambda: None,
        )  # fmt: skip

    def restart(self) -> None:
        self.tally.close()
        self.start()

    @property
    def budget(self) -> Budget:
        record = own_budget(self.spend.set, ID, TenantId(ID))
        assert record is not None
        return compile_budget(record, TenantId(ID), ZoneInfo("UTC"))

    async def calls(self, number: int) -> None:
        for _ in range(number):
            self.spend.settle(await self.spend.reserve((self.budget,), ONE, enforced=True), ONE)

    async def none_left(self) -> None:
        with pytest.raises(BudgetExceeded):
            await self.calls(1)

    @property
    def spent(self) -> int:
        return self.spend.spent(self.spend.month().start)[1]


@pytest.fixture
def alone(tmp_path: Path) -> Alone:
    return Alone(tmp_path)


async def test_a_month_begins_with_the_whole_budget(alone: Alone) -> None:
    await alone.calls(5)
    await alone.none_left()
    alone.clock.time = at("2026-06-01")
    await alone.calls(5)
    await alone.none_left()


Step = Callable[[Alone], None]


@pytest.mark.parametrize("between", [lambda _: None, Alone.restart], ids=["on the way", "at a restart"])
@pytest.mark.parametrize("back", ["2026-05-31T23:59:59", "2026-05-21", "2001-01-01"])
async def test_a_clock_that_is_set_back_does_not_renew_a_budget(alone: Alone, back: str, between: Step) -> None:
    await alone.calls(2)
    alone.clock.time = at("2026-06-01T00:00:01")
    await alone.calls(4)
    alone.clock.time = at(back)
    between(alone)
    assert (alone.spend.month().start, alone.spent) == (at("2026-06-01"), 4)
    await alone.calls(1)
    await alone.none_left()
    assert alone.spend.status() == "exceeded"


async def test_an_exhausted_month_stays_exhausted_when_the_clock_is_set_back(alone: Alone) -> None:
    alone.clock.time = at("2026-06-02")
    await alone.state.change(budget=BudgetSet(expires_at=at("2026-06-01")))
    await alone.none_left()
    # No call was made. The outpost has begun the month without one.
    await alone.spend.peers.begin(alone.spend.month().start)
    alone.clock.time = at("2026-05-01")
    await alone.none_left()
    alone.restart()
    await alone.none_left()


async def test_the_unused_share_of_an_idle_outpost_is_known_when_the_month_begins(alone: Alone) -> None:
    await alone.calls(4)
    alone.clock.time = at("2026-06-01")
    start = alone.spend.month().start
    await alone.spend.peers.begin(start)
    assert (alone.spend.unused(start), alone.spend.status()) == ((0, 5), "ok")


async def test_an_expired_budget_stays_expired_when_the_clock_is_set_back(alone: Alone) -> None:
    await alone.state.change(budget=BudgetSet(expires_at=at("2026-05-21")))
    await alone.calls(1)
    alone.clock.time = at("2026-05-21")
    alone.spend.start()
    async with asyncio.timeout(60):
        while alone.state.current.budget is None or not alone.state.current.budget.ended:
            await asyncio.sleep(0.02)
    await alone.spend.stop()
    alone.clock.time = at("2026-05-20")
    alone.start()
    await alone.none_left()
    await alone.state.change(budget=BudgetSet(expires_at=at("2026-05-21")))
    await alone.calls(1)


async def test_no_call_is_made_if_its_amount_cannot_be_stored(alone: Alone) -> None:
    await alone.calls(1)
    # From now on, writes fail.
    alone.tally.close()
    with pytest.raises(OutpostBudgetUnavailable):
        await alone.calls(1)
    assert alone.spent == 1


async def test_no_call_is_made_if_the_beginning_of_the_month_cannot_be_stored(alone: Alone) -> None:
    (alone.folder / "share.json").mkdir()
    with pytest.raises(OutpostBudgetUnavailable):
        await alone.calls(1)
    (alone.folder / "share.json").rmdir()
    await alone.calls(1)
    assert alone.spent == 1
