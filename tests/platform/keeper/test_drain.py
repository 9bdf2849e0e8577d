"""Storing the journal's records in the real database: each is stored once, whatever the journal contains and however
the keeper ends.
"""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support.journal import Journal, opened, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal import Batch, JournalReader, Position
from gatehouse.platform.keeper.drain import MAX_BATCH_RECORDS, Drain
from gatehouse.platform.keeper.prepare import decode_batch, prepare
from gatehouse.platform.keeper.store import Overtaken, Store


def stored(platform: RunningPlatform, tenant: Tenant) -> dict[UUID, str]:
    """Return the status of each usage record. Assert that each is stored once, with its audit event and in every count,
    and that the chain is valid."""
    usage = platform.sql("SELECT id, status FROM usage_records WHERE tenant_id = %s", [tenant.id])
    of_requests = "tenant_id = %s AND action = 'gateway.request'"
    events = platform.sql(f"SELECT id, outcome FROM audit_events WHERE {of_requests}", [tenant.id])
    counts = ("usage_counts", "usage_count_deltas", "usage_totals", "usage_hour_totals")
    by_user, lately, by_day, by_hour = (
        platform.sql(f"SELECT coalesce(sum(records), 0) FROM {table} WHERE tenant_id = %s", [tenant.id])[0][0]
        for table in counts
    )
    assert Counter(usage) == Counter(events)
    assert len(usage) == len(dict(usage)) == by_user + lately == by_day == by_hour
    assert platform.breaks(tenant) == []
    return dict(usage)


async def test_a_request_becomes_a_usage_record_and_an_audit_event(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    mine = [outcome(tenant.id, user_id=tenant.user.id) for _ in range(3)]
    theirs = outcome(other_tenant.id, outcome="refused", status=404, error_code="model_not_found")
    await journal.append(*mine, theirs)
    drain = await journal.drain()
    assert stored(platform, tenant) == {call.id: "success" for call in mine}
    assert stored(platform, other_tenant) == {theirs.id: "refused"}
    assert (drain.status.rows, drain.status.rejected, drain.status.backlog_bytes) == (4, 0, 0)


async def test_stored_records_are_not_stored_again(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> None:
    first, second = outcome(tenant.id), outcome(tenant.id)
    await journal.append(first)
    await journal.drain()
    await journal.append(second)
    await journal.drain()
    await journal.killed()
    await journal.drain()
    await journal.drain()
    assert set(stored(platform, tenant)) == {first.id, second.id}
    assert not [path for path in journal.path.iterdir() if path.is_dir()]


async def test_a_dead_writers_position_is_deleted_with_its_files(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    await journal.append(outcome(tenant.id))
    await journal.drain()
    (writer,) = [path.name for path in journal.path.iterdir() if path.is_dir()]
    query = "SELECT count(*) FROM journal_positions WHERE writer_id = %s"
    assert platform.sql(query, [writer]) == [(1,)]
    await journal.killed()
    await journal.drain()
    assert platform.sql(query, [writer]) == [(0,)]


async def test_an_unfinished_stream_of_a_dead_writer_is_recorded_as_interrupted(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    ended, broken, cut = (outcome(tenant.id, stream=True) for _ in range(3))
    await journal.append(opened(ended), opened(broken))
    await journal.drain()
    assert stored(platform, tenant) == {}
    await journal.append(ended, opened(cut))
    await journal.killed()
    await journal.drain()
    assert stored(platform, tenant) == {ended.id: "success", broken.id: "interrupted", cut.id: "interrupted"}
    assert platform.sql("SELECT count(*) FROM open_streams WHERE id = ANY(%s)", [[ended.id, broken.id, cut.id]]) == [
        (0,)
    ]
    (row,) = platform.sql("SELECT latency_ms, input_tokens, stream FROM usage_records WHERE id = %s", [broken.id])
    assert row == (None, None, True)


async def test_a_stream_within_one_batch_is_one_record(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    call = outcome(tenant.id, stream=True, outcome="cancelled", status=499)
    await journal.append(opened(call), call)
    await journal.killed()
    await journal.drain()
    assert stored(platform, tenant) == {call.id: "cancelled"}


async def test_a_record_with_text_that_postgresql_cannot_store_is_stored(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    model = ' a\0b\tc\nd\re\\f\\N\'"\u2028\U0001f600{x,"y"}\\'
    odd = outcome(tenant.id, requested_model=model, request_id="NULL", error_code="\t", user_id=tenant.user.id)
    empty = outcome(tenant.id, requested_model="", request_id="\\", error_code='"', provider="{}", model_id=",")
    await journal.append(odd, empty)
    await journal.drain()
    assert set(stored(platform, tenant)) == {odd.id, empty.id}
    query = "SELECT requested_model, request_id, provider, model_id FROM usage_records WHERE id = %s"
    assert platform.sql(query, [odd.id]) == [(model.replace("\0", "\ufffd"), "NULL", "sandbox", "echo")]
    assert platform.sql(query, [empty.id]) == [("", "\\", "{}", ",")]
    events = (await tenant.admin.client.get("/v1/audit/events")).json()["events"]
    result = {event["request_id"]: (event["details"]["model"], event["reason"]) for event in events}
    assert result == {"NULL": (model.replace("\0", "\ufffd"), "\t"), "\\": ("", '"')}


async def test_a_batch_of_several_organizations_and_months_is_stored_in_their_chains(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    platform.show_all(other_tenant)
    moments = [datetime(2026, month, 1, tzinfo=UTC).timestamp() + n for n in range(3) for month in (9, 8, 10)]
    mine, theirs = ([outcome(item.id, timestamp=at) for at in moments] for item in (tenant, other_tenant))
    await journal.append(*(call for both in zip(mine, theirs, strict=True) for call in both))
    await journal.drain()
    assert set(stored(platform, tenant)) == {call.id for call in mine}
    assert set(stored(platform, other_tenant)) == {call.id for call in theirs}


async def test_a_slow_database_gets_smaller_batches(
    platform: RunningPlatform, tenant: Tenant, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [outcome(tenant.id) for _ in range(MAX_BATCH_RECORDS)]
    await journal.append(*calls)
    write, sizes = Store.write, []

    def slow(self: Store, batch: Batch, *args: Any, **more: Any) -> None:
        sizes.append(len(batch.entries))
        if len(batch.entries) > MAX_BATCH_RECORDS // 4:
            raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")
        write(self, batch, *args, **more)

    monkeypatch.setattr(Store, "write", slow)
    drain = Drain(platform.installed.url, journal.path)
    drain.start()
    async with asyncio.timeout(60):
        while drain.status.rows < len(calls):
            await asyncio.sleep(0.01)
    await asyncio.to_thread(drain.stop, 20)
    assert sizes[:3] == [MAX_BATCH_RECORDS, MAX_BATCH_RECORDS // 2, MAX_BATCH_RECORDS // 4]
    assert set(stored(platform, tenant)) == {call.id for call in calls}


async def test_a_record_with_impossible_token_counts_is_stored(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    call = outcome(tenant.id, output_tokens=10**30)
    await journal.append(call)
    await journal.drain()
    assert set(stored(platform, tenant)) == {call.id}


async def test_a_record_that_cannot_be_stored_is_set_aside_and_does_not_block_others(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    good = [outcome(tenant.id) for _ in range(9)]
    unstorable = outcome(tenant.id, cost_usd="a lot")
    twice = good[2]
    nobodys = outcome(new_id())
    await journal.append(*good[:4], unstorable, *good[4:7], b"no record", twice, nobodys, *good[7:])
    drain = await journal.drain()
    assert set(stored(platform, tenant)) == {call.id for call in good}
    assert drain.status.rejected == 4
    aside = (journal.path / "rejected.log").read_text()
    assert aside.count("\n") == 4
    assert all(part in aside for part in ("a lot", "no record", str(twice.id), str(nobodys.id)))


async def test_records_of_months_long_ago_are_stored(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    old = outcome(tenant.id, timestamp=datetime(2019, 5, 17, tzinfo=UTC).timestamp())
    wrong_clock = outcome(tenant.id, timestamp=12.5)
    await journal.append(old, wrong_clock)
    await journal.drain()
    assert set(stored(platform, tenant)) == {old.id, wrong_clock.id}
    assert platform.sql("SELECT count(*) FROM usage_records_201905 WHERE id = %s", [old.id]) == [(1,)]


async def test_rows_move_into_their_months_partition_when_it_is_created(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    """Administration stores rows in the default partition if their month has no partition. These rows must not prevent
    the creation of the month's partition."""
    insert = "INSERT INTO dlp_events (tenant_id, id, timestamp, request_id, direction, status)"
    platform.sql(f"{insert} VALUES (%s, %s, '2017-02-03', 'r', 'input', 'logged')", [tenant.id, new_id()])
    call = outcome(tenant.id, timestamp=datetime(2017, 2, 4, tzinfo=UTC).timestamp())
    await journal.append(call)
    await journal.drain()
    assert set(stored(platform, tenant)) == {call.id}
    assert platform.sql("SELECT count(*) FROM dlp_events_201702") == [(1,)]


async def test_a_keeper_that_was_replaced_stores_nothing(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    """The first keeper was killed while its commit was still in progress. The next one must not store the batch
    again."""
    call = outcome(tenant.id, stream=True)
    await journal.append(call, opened(outcome(tenant.id, stream=True)))
    batch = JournalReader(journal.path).batch()
    first, second = Store(platform.installed.url), Store(platform.installed.url)
    try:
        for store in (first, second):
            store.missing_tenants({str(tenant.id)})
        prepared = prepare(decode_batch(batch)[0], [], {})
        first.write(batch, {}, prepared, before_commit=list)
        with pytest.raises(Overtaken):
            second.write(batch, {}, prepared, before_commit=list)
        with pytest.raises(Overtaken):
            second.write(batch, dict.fromkeys(batch.positions, Position(9, 9)), prepared, before_commit=list)
        assert second.positions().items() >= batch.positions.items()
    finally:
        first.close()
        second.close()
    assert set(stored(platform, tenant)) == {call.id}
    await journal.drain()
    assert set(stored(platform, tenant)) == {call.id}


async def test_an_error_at_any_statement_stores_nothing_or_everything(
    platform: RunningPlatform, tenant: Tenant, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks at each step of the transaction in turn, and once after the commit."""
    steps = ("_move", "_streams", "_insert", "_count", "_chain", "forget_writers")
    calls = [outcome(tenant.id, stream=True) for _ in range(2 * len(steps))]
    for number, step in enumerate(steps):
        begun, ended = calls[2 * number], calls[2 * number + 1]
        await journal.append(opened(begun), ended)
        real, broken = getattr(Store, step), []

        def break_once(self: Store, *args: Any, real: Any = real, broken: list[int] = broken) -> Any:
            result = real(self, *args)
            if not broken:
                broken.append(1)
                self._connection.close()
                raise psycopg.OperationalError("the connection is lost")
            return result

        with monkeypatch.context() as patch:
            patch.setattr(Store, step, break_once)
            drain = Drain(platform.installed.url, journal.path)
            drain.start()
            deadline = time.monotonic() + 60
            while not (broken and drain.status.connected):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)
            await asyncio.to_thread(drain.stop, 10)
        await journal.append(begun)
    await journal.drain()
    assert set(stored(platform, tenant)) == {call.id for call in calls}


async def test_a_second_keeper_of_the_same_home_waits_for_the_first(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    first, second = Drain(platform.installed.url, journal.path), Drain(platform.installed.url, journal.path)
    first.start()
    await asyncio.sleep(0.1)
    second.start()
    call = outcome(tenant.id)
    await journal.append(call)
    await asyncio.to_thread(first.stop, 10)
    later = outcome(tenant.id)
    await journal.append(later)
    deadline = time.monotonic() + 60
    while second.status.rows == 0:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    await asyncio.to_thread(second.stop, 10)
    assert set(stored(platform, tenant)) == {call.id, later.id}
    assert (first.status.rows, second.status.rows) == (1, 1)


async def test_administration_and_the_keeper_share_the_chain(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    drain = Drain(platform.installed.url, journal.path)
    drain.start()
    calls = [outcome(tenant.id) for _ in range(120)]

    async def requests() -> None:
        for call in calls:
            await journal.append(call)
            await asyncio.sleep(0.003)

    async def changes() -> None:
        for number in range(15):
            answer = await tenant.user.client.post("/api/auth/api-keys", json={"description": f"{number}"})
            assert answer.status_code == 201

    await asyncio.gather(requests(), changes(), changes())
    await asyncio.to_thread(drain.stop, 10)
    assert set(stored(platform, tenant)) == {call.id for call in calls}
    assert len(await platform.audit(tenant, "api_key.created")) == 30
