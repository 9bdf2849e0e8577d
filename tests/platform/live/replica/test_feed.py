"""The change feed, which stops requests to a provider after a kill switch (docs/kill-switch.md,
docs/decisions/change-feed.md)."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncSession
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live import nodes
from gatehouse.platform.live.nodes import Node, wait_until_confirmed
from gatehouse.platform.live.replica import feed as feed_module
from gatehouse.platform.live.replica.feed import Feed, SwitchesUnknown
from gatehouse.platform.live.replica.state import Replica


class Reachable(Database):
    """A database that the test can make unavailable or unresponsive."""

    away = False
    silent = False

    @asynccontextmanager
    async def feed(self) -> AsyncIterator[AsyncSession]:
        if self.silent:
            await asyncio.sleep(60)
        if self.away:
            raise OperationalError("", None, OSError())
        async with super().feed() as session:
            yield session


class Worker:
    """The live parts of another worker, in addition to those of the platform."""

    def __init__(self, platform: RunningPlatform, *, fail_closed: bool = False) -> None:
        self.platform = platform
        self.database = Reachable(platform.installed.url)
        self.replica = Replica()
        self.node = Node(self.database)
        self.policies: list[set[str]] = []
        self.on_policy: Callable[[], Awaitable[None]] | None = None
        self.feed = Feed(self.database, self.replica, self.node, self._policies, fail_closed=fail_closed)

    async def _policies(self, tenants: set[str]) -> None:
        self.policies.append(tenants)
        if self.on_policy is not None:
            await self.on_policy()

    async def load(self) -> None:
        """Start the feed without following it: the test does that."""
        await self.feed.start()
        assert self.feed._follower is not None
        self.feed._follower.cancel()
        await asyncio.gather(self.feed._follower, return_exceptions=True)

    def forgotten(self) -> None:
        self.platform.sql("UPDATE nodes SET seen_at = now() - interval '1 day' WHERE id = %s", [self.node.id])

    def engage(self, tenant: Tenant) -> UUID:
        """Switch a model off and commit."""
        model_id = new_id()
        self.platform.sql(
            "INSERT INTO model_configs (id, tenant_id, provider, model_id, kill_switch_disabled_at)"
            " VALUES (%s, %s, 'p', %s, now())",
            [model_id, tenant.id, str(model_id)],
        )
        self.platform.touch("switch", model_id)
        return model_id

    async def asleep(self) -> None:
        """Act like a process that was suspended and has just continued."""
        self.feed.last_contact -= 60
        self.feed._last_tick -= 60
        self.feed._tick()


@pytest.fixture
async def worker(platform: RunningPlatform) -> AsyncIterator[Worker]:
    made = Worker(platform)
    yield made
    await made.feed.stop()
    await made.database.close()


@pytest.fixture
async def closed_worker(platform: RunningPlatform) -> AsyncIterator[Worker]:
    made = Worker(platform, fail_closed=True)
    yield made
    await made.feed.stop()
    await made.database.close()


async def revision(platform: RunningPlatform) -> int:
    return int(platform.sql("SELECT revision FROM revision_head")[0][0])


def test_the_lease_is_shorter_than_the_wait_for_a_change() -> None:
    assert feed_module.HEARTBEAT_INTERVAL_SECONDS < feed_module.LEASE_SECONDS < nodes.PROPAGATION_TIMEOUT_SECONDS


async def test_a_kill_switch_survives_a_restart(worker: Worker, tenant: Tenant) -> None:
    model_id = worker.engage(tenant)
    await worker.load()
    assert model_id in worker.replica.switched_off


async def test_changes_committed_during_the_start_are_loaded_before_it_ends(
    worker: Worker, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    engaged: list[UUID] = []
    join = worker.node.join

    async def late(known: int) -> None:
        engaged.append(worker.engage(tenant))
        await join(known)

    monkeypatch.setattr(worker.node, "join", late)
    await worker.load()
    assert engaged[0] in worker.replica.switched_off


async def test_a_removed_worker_reads_changes_before_it_continues(worker: Worker, tenant: Tenant) -> None:
    await worker.load()
    worker.forgotten()
    engaged: list[UUID] = []

    async def meanwhile() -> None:
        # The worker has read the changes and is not listed again yet, so this change does not wait for the worker.
        if not engaged:
            engaged.append(worker.engage(tenant))
            far = await wait_until_confirmed(worker.database, await revision(worker.platform))
            assert worker.node.name not in far.pending

    worker.on_policy = meanwhile
    worker.platform.touch("policy", tenant.id)
    await worker.feed.catch_up()
    assert engaged[0] in worker.replica.switched_off


async def test_a_removed_worker_registers_again(worker: Worker, tenant: Tenant) -> None:
    await worker.load()
    worker.platform.sql("DELETE FROM nodes WHERE id = %s", [worker.node.id])
    model_id = worker.engage(tenant)
    await worker.feed.catch_up()
    assert model_id in worker.replica.switched_off
    assert worker.platform.sql("SELECT revision FROM nodes WHERE id = %s", [worker.node.id]) == [
        (worker.replica.revision,)
    ]


async def test_a_suspended_worker_catches_up_before_it_sends(worker: Worker, tenant: Tenant) -> None:
    await worker.load()
    assert worker.feed.current()
    model_id = worker.engage(tenant)
    await worker.asleep()
    assert not worker.feed.current()
    await asyncio.gather(*(worker.feed.before_attempt() for _ in range(100)))
    assert worker.feed.current()
    assert model_id in worker.replica.switched_off


async def test_a_suspended_worker_catches_up_although_its_connection_ended_while_it_was_suspended(
    worker: Worker, tenant: Tenant
) -> None:
    await worker.load()
    model_id = worker.engage(tenant)
    await worker.asleep()
    # The follower reports the query that was under way, or the next one. Both say nothing about the database now.
    worker.feed._mark_lost("TimeoutError")
    assert not worker.feed.current()
    worker.database.away = True
    sending = asyncio.create_task(worker.feed.before_attempt())
    await asyncio.sleep(0.3)
    assert not worker.feed.current()
    assert not sending.done()
    worker.database.away = False
    await sending
    assert worker.feed.current()
    assert model_id in worker.replica.switched_off


async def test_a_suspended_worker_waits_longer_for_a_slow_database(
    worker: Worker, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.load()
    model_id = worker.engage(tenant)
    await worker.asleep()
    monkeypatch.setattr(feed_module, "CATCH_UP_TIMEOUT_SECONDS", 0.1)
    feed = worker.database.feed

    @asynccontextmanager
    async def slow() -> AsyncIterator[AsyncSession]:
        await asyncio.sleep(0.5)
        async with feed() as session:
            yield session

    monkeypatch.setattr(worker.database, "feed", slow)
    await worker.feed.before_attempt()
    assert model_id in worker.replica.switched_off


async def test_a_suspended_worker_without_the_database_tries_and_continues(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.load()
    worker.database.away = True
    for _ in range(2):
        await worker.asleep()
        assert not worker.feed.current()
        monkeypatch.setattr(feed_module, "RESUMED_TIMEOUT_SECONDS", 0.5)
        await worker.feed.before_attempt()
        assert worker.feed.lost
        assert worker.feed.current()
    worker.database.away = False
    await worker.feed.catch_up()
    assert not worker.feed.lost


async def test_a_hanging_database_costs_one_wait_and_not_one_per_request(worker: Worker) -> None:
    await worker.load()
    worker.database.silent = True
    worker.feed.last_contact -= 60
    began = time.monotonic()
    await asyncio.gather(*(worker.feed.before_attempt() for _ in range(100)))
    assert time.monotonic() - began < 3 * feed_module.CATCH_UP_TIMEOUT_SECONDS
    assert worker.feed.current()
    worker.database.silent = False


async def test_fail_mode_closed_refuses_after_ten_seconds_without_the_database(closed_worker: Worker) -> None:
    worker = closed_worker
    await worker.load()
    worker.database.away = True
    worker.feed.last_contact -= 5
    await worker.feed.before_attempt()
    worker.feed.last_contact -= 10
    assert not worker.feed.current()
    with pytest.raises(SwitchesUnknown):
        await worker.feed.before_attempt()
    worker.database.away = False
    await worker.feed.before_attempt()
    assert worker.feed.current()


async def test_missing_revisions_trigger_a_full_reload(worker: Worker, tenant: Tenant) -> None:
    await worker.load()
    model_id = worker.engage(tenant)
    worker.platform.sql("DELETE FROM changes WHERE revision = %s", [await revision(worker.platform)])
    await worker.feed.catch_up()
    assert model_id in worker.replica.switched_off
    assert str(tenant.id) in worker.policies[-1]


async def test_a_database_restored_to_an_earlier_revision_is_reloaded(worker: Worker, tenant: Tenant) -> None:
    await worker.load()
    stale = new_id()
    worker.replica.switched_off.add(stale)
    worker.replica.revision += 1000
    model_id = worker.engage(tenant)
    await worker.feed.catch_up()
    assert model_id in worker.replica.switched_off
    assert stale not in worker.replica.switched_off
    assert worker.replica.revision == await revision(worker.platform)


async def test_an_unreadable_policy_is_not_confirmed_and_is_read_again(worker: Worker, tenant: Tenant) -> None:
    await worker.load()
    known = worker.replica.revision

    async def away() -> None:
        raise OperationalError("", None, OSError())

    worker.on_policy = away
    worker.platform.touch("policy", tenant.id)
    with pytest.raises(OperationalError):
        await worker.feed.catch_up()
    assert worker.replica.revision == known
    worker.on_policy = None
    await worker.feed.catch_up()
    assert worker.policies[-1] == {str(tenant.id)}


async def test_a_removed_model_stays_off_for_waiting_requests(worker: Worker, tenant: Tenant) -> None:
    await worker.load()
    model_id = worker.engage(tenant)
    worker.platform.sql("DELETE FROM model_configs WHERE id = %s", [model_id])
    worker.platform.touch("switch", model_id)
    await worker.feed.catch_up()
    other = worker.engage(tenant)
    await worker.feed.catch_up()
    assert other in worker.replica.switched_off
    worker.platform.sql("DELETE FROM model_configs WHERE id = %s", [other])
    worker.platform.touch("switch", other)
    await worker.feed.catch_up()
    assert other in worker.replica.switched_off


async def test_a_change_waits_two_seconds_and_names_pending_workers(worker: Worker, tenant: Tenant) -> None:
    await worker.load()
    worker.engage(tenant)
    far = await wait_until_confirmed(worker.database, await revision(worker.platform))
    assert worker.node.name in far.pending
    assert far.confirmed == far.total - len(far.pending)
    assert 2000 <= far.elapsed_ms < 4000
    await worker.feed.catch_up()
    far = await wait_until_confirmed(worker.database, await revision(worker.platform))
    assert far.pending == []


async def test_a_dead_process_of_this_machine_is_removed_by_the_next(worker: Worker) -> None:
    ghost = new_id()
    worker.platform.sql(
        "INSERT INTO nodes (id, name, pid, host) VALUES (%s, 'ghost', 4194303, %s)", [ghost, worker.node.host]
    )
    elsewhere = new_id()
    worker.platform.sql(
        "INSERT INTO nodes (id, name, pid, host) VALUES (%s, 'far', 4194303, 'another machine')", [elsewhere]
    )
    await worker.load()
    left = {row[0] for row in worker.platform.sql("SELECT id FROM nodes")}
    assert ghost not in left
    assert elsewhere in left
    worker.platform.sql("DELETE FROM nodes WHERE id = %s", [elsewhere])
