"""Duties, which are repeated until they are cancelled."""

import asyncio
from typing import Any

import pytest

from gatehouse.administration import duties
from gatehouse.administration.duties import Duty


async def test_a_failure_is_logged_once_and_the_duty_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, warnings = 0, []

    class Log:
        def warning(self, event: str, **fields: Any) -> None:
            warnings.append((event, fields))

    async def work(context: None) -> None:
        nonlocal runs
        runs += 1
        if runs in {2, 3, 5}:
            raise ValueError("away")

    monkeypatch.setattr(duties, "log", Log())
    task = asyncio.create_task(duties.repeat(Duty("a duty", 0.0, work), None))
    while runs < 6:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert warnings == [("duty.failed", {"duty": "a duty", "reason": "ValueError: away"})] * 2
