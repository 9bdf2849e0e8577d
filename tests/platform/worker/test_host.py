"""Periodic tasks of a worker."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy.exc import SQLAlchemyError
from tests.support.platform import RunningPlatform
from tests.support.stops import note_stops
from tests.support.tasks import until_ended

from gatehouse.engine.stages.calls import sampling
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.worker import host
from gatehouse.platform.worker.host import PlatformHost


async def test_expired_counts_are_purged_without_requests(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts of rate limits (docs/rate-limits.md)."""
    monkeypatch.setattr(host, "_PURGE_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(host, "MemoryCounters", partial(MemoryCounters, window=0.05))
    async with RunningPlatform.start(platform.installed.settings) as another:
        counters = another.host.counters
        assert isinstance(counters, MemoryCounters)
        for number in range(10):
            await counters.take(f"ip:192.0.2.{number}", 60)
        async with asyncio.timeout(60):
            while len(counters):
                await asyncio.sleep(0.01)


async def test_a_failed_start_stops_the_started_parts(platform: RunningPlatform, tmp_path: Path) -> None:
    settings = platform.installed.settings.model_copy(update={"gatehouse_home": tmp_path})
    keys = platform.installed.master_keys
    # Without the tables, the start fails at the change feed, after other parts were started.
    failing = PlatformHost(settings, Database(platform.installed.url, schema="pg_catalog"), keys)
    failing.build()
    before = asyncio.all_tasks()
    with pytest.raises(SQLAlchemyError):
        await failing.start()
    await until_ended(before)
    assert failing.database.available_connections() == failing.database.pool_size


async def test_parts_are_stopped_in_reverse_order_of_their_start(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = platform.installed.settings.model_copy(update={"gatehouse_home": tmp_path})
    database = Database(platform.installed.url)
    another = PlatformHost(settings, database, platform.installed.master_keys)
    another.build()
    parts = {
        "database.close": another.database,
        "journal.close": another.journal,
        "outbound.close": another.outbound,
        "detectors.stop": another.detectors,
        "feed.stop": another.feed,
        "spender.stop": another.spender,
        "sampling.wait": sampling,
        # Copies in progress use the parts above, and calls of batches start copies.
        "shadows.stop": another.engine.shadows,
        "batches.stop": another.batches,
    }
    stopped = note_stops(monkeypatch, parts)
    await another.start()
    await another.stop()
    assert stopped == [*reversed(parts)]
