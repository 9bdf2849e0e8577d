"""The start and the stop of the keeper's parts."""

import asyncio
import threading
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.support.platform import RunningPlatform
from tests.support.stops import note_stops
from tests.support.tasks import until_ended

from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.platform.keeper.process import Keeper


def settings_of(platform: RunningPlatform, home: Path, **changed: object) -> Settings:
    return platform.installed.settings.model_copy(update={"gatehouse_home": home, "database_url": None, **changed})


async def test_parts_are_stopped_in_reverse_order_of_their_start(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = asyncio.all_tasks()
    keeper = Keeper(settings_of(platform, tmp_path), platform.installed.url, journal=True)
    assert keeper.drain is not None
    parts = {
        "database.close": keeper.database,
        "exporter.stop": keeper.metrics.exporter,
        "receivers.close": keeper.receivers,
        "outbound.close": keeper.outbound,
        "node.leave": keeper.node,
        "drain.stop": keeper.drain,
    }
    stopped = note_stops(monkeypatch, parts)
    await keeper.start()
    assert {"heartbeats", "work"} <= {task.get_name() for task in asyncio.all_tasks() - before}
    await keeper.stop()
    assert stopped == [*reversed(parts)]
    await until_ended(before)


async def test_a_worker_without_a_journal_has_no_drain(platform: RunningPlatform, tmp_path: Path) -> None:
    keeper = Keeper(settings_of(platform, tmp_path), platform.installed.url, journal=False)
    await keeper.start()
    assert (keeper.drain, keeper.status()) == (None, {"jobs": True})
    await keeper.stop()


async def test_a_failed_start_stops_the_started_parts(platform: RunningPlatform, tmp_path: Path) -> None:
    # The key is read last, after the drain and the heartbeats were started.
    settings = settings_of(platform, tmp_path, gatehouse_master_key=SecretStr("no key"))
    before = asyncio.all_tasks()
    keeper = Keeper(settings, platform.installed.url, journal=True)
    with pytest.raises(BadSettings):
        await keeper.start()
    await until_ended(before)
    assert "drain" not in {thread.name for thread in threading.enumerate()}
    assert keeper.database.available_connections() == keeper.database.pool_size
