"""Sign-in attempts are counted in PostgreSQL (docs/rate-limits.md)."""

import asyncio
from uuid import uuid4

import pytest
from sqlalchemy.exc import SQLAlchemyError
from tests.support.clock import HandClock
from tests.support.platform import RunningPlatform

from gatehouse.foundation.storage.database import Database
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.keeper.housekeeping import prune
from gatehouse.platform.live.tries import TryCounters


def key(kind: str = "login") -> str:
    return f"{kind}:{uuid4()}"


def workers(platform: RunningPlatform, count: int = 4) -> list[TryCounters]:
    """Return the counters of several workers. Each remembers its own refusals."""
    return [TryCounters(platform.host.database) for _ in range(count)]


async def test_concurrent_attempts_pass_up_to_the_limit_over_all_workers(
    platform: RunningPlatform,
) -> None:
    tried, all_workers = key(), workers(platform)
    taken = await asyncio.gather(*(all_workers[number % 4].take(tried, 10) for number in range(200)))
    assert sum(item.allowed for item in taken) == 10
    assert sorted(item.rate.remaining for item in taken if item.allowed) == list(range(10))
    assert all(item.rate.remaining == 0 and 1 <= item.retry_after <= 60 for item in taken if not item.allowed)


async def test_two_claims_count_together_or_not_at_all(platform: RunningPlatform) -> None:
    tried, (one, other) = key(), workers(platform, 2)
    full, free = key("ip"), key("ip")
    assert (await one.take(full, 1)).allowed
    refused = await one.take_all((tried, 2), (full, 1))
    assert (refused.allowed, refused.claim) == (False, 1)
    passed = await other.take_all((tried, 2), (free, 100))
    assert (passed.allowed, passed.claim, passed.rate.remaining) == (True, 0, 1)


async def test_many_attempts_from_one_address_at_different_accounts_do_not_deadlock(
    platform: RunningPlatform,
) -> None:
    """Attempts claim keys in any order. Two transactions that wait for each other's locks would never end."""
    a, b, all_workers = key(), key(), workers(platform)
    claims = [((a, 1000), (b, 1000)), ((b, 1000), (a, 1000))]
    takes = (all_workers[number % 4].take_all(*claims[number % 2]) for number in range(200))
    assert all(item.allowed for item in await asyncio.wait_for(asyncio.gather(*takes), 20))
    assert (await all_workers[0].take(a, 1000)).rate.remaining == 1000 - 201


async def test_the_window_slides_and_a_refused_attempt_is_not_counted(platform: RunningPlatform) -> None:
    tried = key()
    one, other = (TryCounters(platform.host.database, window=1.5) for _ in range(2))
    assert (await one.take(tried, 2)).allowed
    await asyncio.sleep(0.8)
    assert (await other.take(tried, 2)).allowed
    # The first worker has learned that a slot is free, and the second has not.
    assert [(await counters.take(tried, 2)).allowed for counters in (one, other, one)] == [False] * 3
    await asyncio.sleep(0.8)
    assert [(await counters.take(tried, 2)).allowed for counters in (one, other)] == [True, False]


async def test_a_key_has_a_bounded_number_of_rows_whatever_its_limit(platform: RunningPlatform) -> None:
    platform.sql("DELETE FROM sign_in_tries")
    (counters,) = workers(platform, 1)
    crowded = key("ip")
    await asyncio.gather(*(counters.take(crowded, 1_000_000_000) for _ in range(500)))
    ((rows, tries),) = platform.sql("SELECT count(*), sum(tries) FROM sign_in_tries")
    assert tries == 500
    assert rows < 100


async def test_a_refused_key_is_refused_without_a_query_until_a_slot_is_free(platform: RunningPlatform) -> None:
    clock, tried = HandClock(), key()
    counters = TryCounters(platform.host.database, clock)
    assert (await counters.take(tried, 1)).allowed
    refused = await counters.take(tried, 1)
    platform.sql("DELETE FROM sign_in_tries")
    clock.move(20)
    again = await counters.take(tried, 1)
    assert (again.allowed, again.rate.remaining, again.retry_after) == (False, 0, refused.retry_after - 20)
    clock.move(40)
    assert (await counters.take(tried, 1)).allowed


async def test_the_table_contains_no_addresses(platform: RunningPlatform) -> None:
    (counters,) = workers(platform, 1)
    await counters.take("login:somebody@example.test", 10)
    rows = str(platform.sql("SELECT * FROM sign_in_tries"))
    assert "somebody" not in rows
    assert b"somebody".hex() not in rows


async def test_expired_attempts_are_removed(platform: RunningPlatform) -> None:
    platform.sql("DELETE FROM sign_in_tries")
    (counters,) = workers(platform, 1)
    await counters.take(key(), 10)
    platform.sql("UPDATE sign_in_tries SET opened = opened - interval '61 s', ended = ended - interval '61 s'")
    await counters.take(key(), 10)
    host = platform.host
    await prune(
        Tools(
            settings=host.settings,
            database=host.database,
            sealer=host.sealer,
            outbound=host.outbound,
            clock=host.clock,
            receivers=host.receivers,
        )
    )
    assert platform.sql("SELECT count(*) FROM sign_in_tries") == [(1,)]


async def test_without_the_database_attempts_are_refused() -> None:
    database = Database("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(SQLAlchemyError):
        await TryCounters(database).take(key(), 10)
    await database.close()
