"""A keeper loses its connection to PostgreSQL at any point of a batch. Its locks are released within seconds, long
before TCP detects the loss, which may take hours."""

import asyncio
import time
from pathlib import Path
from uuid import UUID

from tests.platform.keeper.test_dlp_rows import CARD
from tests.platform.keeper.test_drain import stored
from tests.support.journal import Journal, opened, outcome
from tests.support.platform import RunningPlatform, Tenant
from tests.support.relay import Relay, relay

from gatehouse.engine.records.outcome import Opened, Outcome
from gatehouse.platform.keeper.drain import Drain

#: The points at which the connection is lost, as fractions of the bytes that the keeper sends for the batch.
CUTS = [*(number / 16 for number in range(16)), 0.97, 0.98, 0.99]
#: Maximum wait for the locks. It is two seconds at nearly every point, and twenty seconds between the messages of one
#: statement.
WAIT_SECONDS = 25


def batch(tenant: Tenant) -> list[Outcome[UUID]]:
    return [outcome(tenant.id, user_id=tenant.user.id, dlp_events=(CARD,), stream=n % 3 == 0) for n in range(150)]


def entries(calls: list[Outcome[UUID]]) -> list[Opened[UUID] | Outcome[UUID]]:
    return [*(opened(call) for call in calls if call.stream), *calls]


async def connected(drain: Drain) -> None:
    drain.start()
    while not drain.status.connected:
        await asyncio.sleep(0.01)


async def bytes_of_a_batch(tenant: Tenant, way: Relay, path: Path) -> int:
    journal, drain = Journal(way.url, path), Drain(way.url, path)
    await connected(drain)
    before = way.carried
    await journal.append(*entries(batch(tenant)))
    await asyncio.to_thread(drain.stop, 20)
    await journal.killed()
    return way.carried - before


async def cut_off(platform: RunningPlatform, socket: Path, path: Path, after: int) -> None:
    tenant = await platform.new_tenant()
    with relay(socket) as way:
        far, drain = Journal(way.url, path / "far"), Drain(way.url, path / "far")
        await connected(drain)
        calls = batch(tenant)
        way.swallow_after(after)
        await far.append(*entries(calls))
        async with asyncio.timeout(60):
            while way.carrying:
                await asyncio.sleep(0.01)
        began = time.monotonic()
        answer = await tenant.user.client.post("/api/auth/api-keys", json={"description": "meanwhile"})
        assert answer.status_code == 201
        near = Journal(platform.installed.url, path / "near")
        later = batch(tenant)
        await near.append(*entries(later))
        await near.drain()
        assert {call.id for call in later} <= set(stored(platform, tenant))
        assert time.monotonic() - began < WAIT_SECONDS
        way.mend()
        await asyncio.to_thread(drain.stop, 20)
    assert set(stored(platform, tenant)) == {call.id for call in (*calls, *later)}
    await far.killed()
    await near.killed()


async def test_the_locks_of_a_disconnected_keeper_are_released_within_seconds(
    platform: RunningPlatform, tenant: Tenant, tmp_path: Path
) -> None:
    socket = platform.host.settings.gatehouse_home / "postgres" / ".s.PGSQL.5432"
    with relay(socket) as way:
        size = await bytes_of_a_batch(tenant, way, tmp_path / "whole")
    async with asyncio.TaskGroup() as group:
        for number, part in enumerate(CUTS):
            group.create_task(cut_off(platform, socket, tmp_path / str(number), int(size * part)))
