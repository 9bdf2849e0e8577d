"""The state that operators set, with concurrent writes."""

import asyncio
from pathlib import Path

import pytest

from gatehouse.outpost.state import BudgetSet, LocalState


@pytest.fixture
def state(tmp_path: Path) -> LocalState:
    return LocalState(tmp_path)


async def test_a_concurrent_write_does_not_release_an_engaged_kill_switch(state: LocalState) -> None:
    writing = asyncio.create_task(state.change(budget=BudgetSet(requests=5)))
    await asyncio.sleep(0)
    engaging = asyncio.create_task(state.switch(active=True))
    await asyncio.sleep(0)
    assert state.stopped
    await writing
    assert state.stopped
    await engaging
    assert (state.stopped, state.current.budget) == (True, BudgetSet(requests=5))


async def test_the_end_of_a_budget_does_not_end_the_next_one(state: LocalState, tmp_path: Path) -> None:
    first, second = BudgetSet(expires_at=1.0), BudgetSet(expires_at=2.0)
    await state.change(budget=first)
    await state.change(budget=second)
    await state.end_budget(first)
    assert state.current.budget == second
    await state.end_budget(second)
    assert LocalState(tmp_path).current.budget == BudgetSet(expires_at=2.0, ended=True)
