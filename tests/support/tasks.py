"""Tasks of asyncio that code under test leaves behind."""

import asyncio
from typing import Any


async def until_ended(before: set[asyncio.Task[Any]]) -> None:
    """Wait until every task that is not in `before` has ended, except this one."""
    async with asyncio.timeout(60):
        while asyncio.all_tasks() - before - {asyncio.current_task()}:
            await asyncio.sleep(0.01)
