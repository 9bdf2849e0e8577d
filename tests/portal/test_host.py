"""The start and the stop of the portal's parts."""

import asyncio

import pytest
from tests.support.portal import RunningPortal
from tests.support.stops import note_stops
from tests.support.tasks import until_ended

from gatehouse.portal.host import PortalHost
from gatehouse.portal.server.duties import DUTIES


async def test_parts_are_stopped_in_reverse_order_of_their_start(
    portal: RunningPortal, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asyncio.all_tasks()
    another = PortalHost(portal.installed)
    parts = {
        "database.close": another.database,
        "exporter.stop": another.metrics.exporter,
        "outbound.close": another.outbound,
    }
    stopped = note_stops(monkeypatch, parts)
    await another.start(DUTIES)
    assert {"database check", "jobs", "duties"} <= {task.get_name() for task in asyncio.all_tasks() - before}
    await another.stop()
    assert stopped == [*reversed(parts)]
    await until_ended(before)


async def test_a_failed_start_stops_the_started_parts(portal: RunningPortal, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("no jobs")

    before = asyncio.all_tasks()
    failing = PortalHost(portal.installed)
    monkeypatch.setattr(failing.jobs, "run", fail)
    with pytest.raises(RuntimeError, match="no jobs"):
        await failing.start(DUTIES)
    await until_ended(before)
    assert failing.database.available_connections() == failing.database.pool_size
