"""What a worker does by itself while it serves."""

import asyncio
from functools import partial

import pytest
from tests.support.platform import RunningPlatform

from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.platform import host


async def test_expired_counts_are_forgotten_also_when_no_request_comes(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reference 1, Rate limiting on the platform, 2."""
    monkeypatch.setattr(host, "_PURGE_SECONDS", 0.02)
    monkeypatch.setattr(host, "MemoryCounters", partial(MemoryCounters, window=0.05))
    async with RunningPlatform.start(platform.installed.settings) as another:
        counters = another.host.counters
        assert isinstance(counters, MemoryCounters)
        for number in range(10):
            await counters.take(f"ip:192.0.2.{number}", 60)
        async with asyncio.timeout(5):
            while len(counters):
                await asyncio.sleep(0.01)
