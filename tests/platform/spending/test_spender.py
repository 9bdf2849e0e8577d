"""Budgets with several workers and a real ledger: accepted calls, refused calls, and returned leases."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from tests.support.clock import HandClock
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.money.quotas import NOTHING, QuotaExceeded
from gatehouse.engine.ports import Reserved
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.spending.accounts import LeaseRequest, Waiting
from gatehouse.platform.spending.ledger import lease
from gatehouse.platform.spending.spender import BudgetUnavailable, Spender
from gatehouse.policy.budgets import Budget, BudgetRecord, CallAmounts, compile_budget
from gatehouse.policy.periods import span

ONE = CallAmounts(requests=1)


def budget(tenant: Tenant, zone: str = "UTC", **fields: Any) -> Budget:
    record = BudgetRecord(
        **{"id": new_id(), "scope_type": "tenant", "scope_id": tenant.id, "period": "month", **fields}
    )
    return compile_budget(record, TenantId(tenant.id), ZoneInfo(zone))


class Faulty(Database):
    """A database whose service transactions fail at the point `at`: `begin`, `commit`, or `after` the commit."""

    at = ""
    #: The time in seconds before the failure.
    slow = 0.0

    @contextlib.asynccontextmanager
    async def service(self) -> AsyncIterator[AsyncSession]:
        async with super().service() as session:
            if self.at == "begin":
                await self._fail()
            commit = session.commit

            async def faulty() -> None:
                if self.at == "commit":
                    await self._fail()
                await commit()
                if self.at == "after":
                    await self._fail()

            session.commit = faulty  # type: ignore[method-assign]
            yield session

    async def _fail(self) -> None:
        await asyncio.sleep(self.slow)
        raise OperationalError("", {}, Exception())


class Workers:
    def __init__(self, platform: RunningPlatform) -> None:
        self.database = platform.host.database
        self.clock = HandClock(1_790_000_000.0)
        self.all: list[Spender] = []
        self.ids: list[UUID] = []

    async def start(self, count: int) -> list[Spender]:
        for _ in range(count):
            spender = Spender(self.database, self.clock)
            self.ids.append(uuid4())
            await spender.start(self.ids[-1])
            self.all.append(spender)
        return self.all

    async def granted(self, of: Budget) -> tuple[int, int, int]:
        query = text(
            "SELECT coalesce(sum(granted_nano_usd), 0)::bigint, coalesce(sum(granted_requests), 0)::bigint,"
            " coalesce(sum(granted_tokens), 0)::bigint FROM budget_leases WHERE budget_id = :id"
        )
        async with self.database.service() as session:
            usd, requests, tokens = (await session.execute(query, {"id": of.id})).one()
        return usd, requests, tokens

    async def events(self, tenant: Tenant, event_type: str) -> list[dict[str, Any]]:
        query = text("SELECT payload FROM outbox WHERE tenant_id = :id AND event_type = :type ORDER BY created_at, id")
        async with self.database.service() as session:
            return list((await session.execute(query, {"id": tenant.id, "type": event_type})).scalars())


@pytest.fixture
async def workers(platform: RunningPlatform) -> AsyncIterator[Workers]:
    made = Workers(platform)
    yield made
    for spender in made.all:
        await spender.stop()


async def reserve(spender: Spender, of: Budget, taking: CallAmounts = ONE, *, enforced: bool = True) -> Reserved | None:
    try:
        return await spender.reserve([of], taking, enforced=enforced)
    except QuotaExceeded:
        return None


async def test_of_200_concurrent_calls_to_four_workers_exactly_50_pass(workers: Workers, tenant: Tenant) -> None:
    four, of = await workers.start(4), budget(tenant, limit_requests=50)
    passed = await asyncio.gather(*(reserve(four[n % 4], of) for n in range(200)))
    assert sum(item is not None for item in passed) == 50
    assert (await workers.granted(of))[1] == 50


async def test_unused_reservations_are_available_to_other_calls(workers: Workers, tenant: Tenant) -> None:
    four, of = await workers.start(4), budget(tenant, limit_usd=Decimal(1))
    dear = CallAmounts(nano_usd=400_000_000, requests=1)
    first, second = await reserve(four[0], of, dear), await reserve(four[1], of, dear)
    assert first is not None
    assert second is not None
    assert await reserve(four[2], of, dear) is None
    four[0].settle(first, CallAmounts(nano_usd=1_000_000, requests=1))
    four[1].settle(second, None)
    async with asyncio.timeout(60):
        while (third := await reserve(four[2], of, dear)) is None:
            await asyncio.sleep(0.1)
    four[2].settle(third, CallAmounts(nano_usd=400_000_000, requests=1))
    # 1 - 0.001 - 0.4: the remainder is exact to nine digits.
    assert await reserve(four[3], of, CallAmounts(nano_usd=599_000_001, requests=1)) is None
    async with asyncio.timeout(60):
        while await reserve(four[3], of, CallAmounts(nano_usd=599_000_000, requests=1)) is None:
            await asyncio.sleep(0.1)


async def test_a_refusal_names_the_next_period_and_one_event_is_announced(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=1, scope_type="user", scope_id=tenant.user.id, period="day")
    await one.reserve([of], ONE, enforced=True)
    for _ in range(3):
        with pytest.raises(QuotaExceeded) as refused:
            await one.reserve([of], ONE, enforced=True)
    result = refused.value
    end = int(result.headers["X-RateLimit-Reset"])
    assert end % 86_400 == 0
    assert 0 < end - workers.clock.now() <= 86_400
    assert result.extra["tier"] == "user:day"
    assert result.headers["X-Budget-Remaining-Requests"] == "0"
    assert one.exhausted([of]) is not None
    (event,) = await workers.events(tenant, "quota_exceeded")
    assert event == {
        "user_id": str(tenant.user.id), "group_id": None, "limit_type": "requests_day", "limit_value": 1,
        "current_usage": 1, "reset_at": result.text[result.text.index("anew at ") + 8 : -1],
    }  # fmt: skip


async def test_a_warning_budget_refuses_no_call_and_announces_an_event(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=2, action="warn")
    for _ in range(5):
        assert await reserve(one, of) is not None
    async with asyncio.timeout(60):
        while not await workers.events(tenant, "quota_exceeded"):
            await asyncio.sleep(0.1)


async def test_calls_are_accepted_again_in_the_next_period(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=1, period="minute")
    assert await reserve(one, of) is not None
    assert await reserve(one, of) is None
    workers.clock.move(60)
    assert await reserve(one, of) is not None


async def test_a_changed_limit_holds_for_the_next_call(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=100)
    for _ in range(10):
        assert await reserve(one, of) is not None
    assert await reserve(one, budget(tenant, id=of.id, limit_requests=10)) is None
    assert await reserve(one, budget(tenant, id=of.id, limit_requests=11)) is not None


async def test_unneeded_leases_are_returned(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_usd=Decimal(1), limit_requests=1_000, limit_tokens=1_000)
    call = CallAmounts(nano_usd=5, requests=1, tokens=7)
    for _ in range(30):
        reserved = await reserve(one, of, call)
        assert reserved is not None
        one.settle(reserved, call)
    async with asyncio.timeout(60):
        while await workers.granted(of) != (150, 30, 210):
            await asyncio.sleep(0.1)


async def test_a_worker_that_stops_returns_its_unspent_leases(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=1_000)
    for _ in range(30):
        reserved = await reserve(one, of)
        assert reserved is not None
        one.settle(reserved, ONE)
    await one.stop()
    workers.all.clear()
    assert (await workers.granted(of))[1] == 30


async def test_a_worker_that_discarded_an_idle_budget_knows_the_spent_amount(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=3)
    reserved = await reserve(one, of)
    assert reserved is not None
    one.settle(reserved, ONE)
    await asyncio.sleep(1.2)
    one._accounts.clear()
    assert [await reserve(one, of) is not None for _ in range(3)] == [True, True, False]


async def test_each_threshold_of_the_plans_limit_is_announced_once(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, id=tenant.id, limit_requests=10, plan=True)
    recorded = text("UPDATE budget_leases SET recorded_requests = :n WHERE budget_id = :id AND writer_id = :writer")
    for n in range(1, 12):
        reserved = await reserve(one, of)
        assert (reserved is None) == (n == 11)
        if reserved is not None:
            one.settle(reserved, ONE)
        async with workers.database.service() as session:
            await session.execute(recorded, {"n": min(n, 10), "id": of.id, "writer": workers.ids[0]})
            await session.commit()
    async with asyncio.timeout(60):
        while len(result := await workers.events(tenant, "usage_threshold")) < 3:
            await asyncio.sleep(0.1)
    assert [(event["threshold"], event["monthly_limit"], event["org_id"]) for event in result] == [
        (0.8, 10, str(tenant.id)), (0.9, 10, str(tenant.id)), (1.0, 10, str(tenant.id)),
    ]  # fmt: skip


async def test_without_the_database_calls_are_refused_when_the_leases_are_spent(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/none", pool_size=1)
    spender = Spender(away, HandClock(1_790_000_000.0))
    await spender.start(uuid4())
    try:
        with pytest.raises(BudgetUnavailable):
            await spender.reserve([budget(tenant, limit_requests=5)], ONE, enforced=True)
        await spender.reserve([budget(tenant, limit_requests=5, action="warn")], ONE, enforced=True)
        await spender.reserve([budget(tenant, limit_requests=5)], ONE, enforced=False)
    finally:
        await spender.stop()
        await away.close()


@pytest.fixture
async def faulty(platform: RunningPlatform) -> AsyncIterator[Faulty]:
    database = Faulty(platform.host.database.url, pool_size=1)
    yield database
    await database.close()


async def settled_at(workers: Workers, of: Budget, requests: int) -> None:
    async with asyncio.timeout(60):
        while (await workers.granted(of))[1] != requests:
            await asyncio.sleep(0.05)


async def wait_for_return(workers: Workers, spender: Spender, of: Budget) -> None:
    """Wait until the leases are returned. The worker sends one request to the ledger for all its accounts, so an error
    of one affects all."""
    reserved = await spender.reserve([of], ONE, enforced=True)
    spender.settle(reserved, None)
    await settled_at(workers, of, 0)


@pytest.mark.parametrize("hopeless", [900, 1_500])
async def test_a_call_that_exceeds_the_remainder_leaves_it_to_others(
    workers: Workers, tenant: Tenant, hopeless: int
) -> None:
    one, other = await workers.start(2)
    of = budget(tenant, limit_tokens=1_000)
    first = await reserve(one, of, CallAmounts(tokens=200))
    assert first is not None
    one.settle(first, CallAmounts(tokens=200))
    for _ in range(3):
        assert await reserve(one, of, CallAmounts(tokens=hopeless)) is None
        # The call is refused here and by other workers, also later: 800 are left.
        assert await reserve(one, of, CallAmounts(tokens=100)) is not None
        assert await reserve(other, of, CallAmounts(tokens=100)) is not None


async def test_listeners_get_the_spent_amount_and_not_the_refused_one(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_tokens=1_000)
    assert await reserve(one, of, CallAmounts(tokens=5_000)) is None
    assert await workers.events(tenant, "quota_exceeded") == []
    assert await reserve(one, of, CallAmounts(tokens=700)) is not None
    assert await reserve(one, of, CallAmounts(tokens=700)) is None
    async with asyncio.timeout(60):
        while not (events := await workers.events(tenant, "quota_exceeded")):
            await asyncio.sleep(0.1)
    (event,) = events
    assert (event["limit_value"], event["current_usage"]) == (1_000, 700)


async def test_a_refused_advance_is_not_announced(workers: Workers, tenant: Tenant) -> None:
    """Single calls may still fit, and the event of the period is needed for the call that reaches the limit."""
    (one,) = await workers.start(1)
    of = budget(tenant, limit_tokens=1_000)
    assert await reserve(one, of, CallAmounts(tokens=700)) is not None
    for tokens in (700, 5_000):
        with pytest.raises(QuotaExceeded):
            await one.reserve([of], CallAmounts(tokens=tokens), enforced=True, announce=False)
    await one._round()
    assert await workers.events(tenant, "quota_exceeded") == []
    assert await reserve(one, of, CallAmounts(tokens=700)) is None
    await one._round()
    assert len(await workers.events(tenant, "quota_exceeded")) == 1


async def test_if_one_of_two_budgets_refuses_nothing_is_reserved_in_the_other(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    wide, narrow = budget(tenant, limit_requests=100), budget(tenant, limit_requests=1)
    for expected in (True, False, False):
        try:
            await one.reserve([wide, narrow], ONE, enforced=True)
            assert expected
        except QuotaExceeded:
            assert not expected
    await settled_at(workers, wide, 1)


async def test_nothing_stays_reserved_if_the_client_disconnects_during_a_request_to_the_ledger(
    workers: Workers, tenant: Tenant
) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=10)
    calls = [asyncio.create_task(one.reserve([of], ONE, enforced=True)) for _ in range(5)]
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    assert all(
        isinstance(item, asyncio.CancelledError) for item in await asyncio.gather(*calls, return_exceptions=True)
    )
    assert await reserve(one, of, CallAmounts(requests=10)) is not None


@pytest.mark.parametrize("at", ["commit", "after"])
async def test_a_failed_return_is_tried_again(workers: Workers, faulty: Faulty, tenant: Tenant, at: str) -> None:
    workers.database = faulty
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=1_000)
    reserved = await one.reserve([of], CallAmounts(requests=50), enforced=True)
    await settled_at(workers, of, 150)
    faulty.at = at
    one.settle(reserved, None)
    await asyncio.sleep(1.2)
    faulty.at = ""
    await settled_at(workers, of, 0)


async def test_spending_beyond_the_reservation_is_reported(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=100)
    reserved = await one.reserve([of], ONE, enforced=True)
    # Wait until the lease that was requested in advance is returned, and no request to the ledger is pending.
    await asyncio.sleep(1.6)
    await settled_at(workers, of, 1)
    one.settle(reserved, CallAmounts(requests=70))
    await settled_at(workers, of, 70)


@pytest.mark.parametrize("at", ["begin", "commit"])
async def test_a_call_without_an_answer_in_time_is_not_reported_as_over_budget(
    workers: Workers, faulty: Faulty, tenant: Tenant, at: str
) -> None:
    workers.database = faulty
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=100)
    faulty.at, faulty.slow = at, 0.2
    calls = []
    for _ in range(20):
        calls.append(asyncio.create_task(one.reserve([of], ONE, enforced=True)))
        await asyncio.sleep(0.05)
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(item) for item in results} == {BudgetUnavailable}


async def test_a_call_that_gets_no_lease_in_time_is_not_reported_as_over_budget(
    workers: Workers, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other calls have used everything that the ledger granted."""
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=100)

    async def in_vain(*_: object) -> bool:
        await asyncio.sleep(0.01)
        return True

    monkeypatch.setattr(one, "_wait_for_ledger", in_vain)
    with pytest.raises(BudgetUnavailable):
        await one.reserve([of], ONE, enforced=True)


async def test_the_former_account_is_used_when_the_clock_goes_back(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of, other = budget(tenant, limit_requests=4, period="minute"), budget(tenant, limit_requests=50)
    workers.clock.move(60 - workers.clock.now() % 60 - 1)
    # A call is in progress in each of the two minutes.
    assert await reserve(one, of) is not None
    for seconds in (2, -2, 2, -2):
        workers.clock.move(seconds)
        await reserve(one, of)
        await asyncio.sleep(0.6)
    assert await reserve(one, of) is not None
    assert await reserve(one, of) is None
    await wait_for_return(workers, one, other)


async def test_another_time_zone_with_the_same_midnight_has_the_same_period(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of_berlin = budget(tenant, "Europe/Berlin", limit_requests=2)
    of_paris = budget(tenant, "Europe/Paris", id=of_berlin.id, limit_requests=2)
    assert await reserve(one, of_berlin) is not None
    assert await reserve(one, of_paris) is not None
    await asyncio.sleep(0.6)
    assert await reserve(one, of_paris) is None
    assert await reserve(one, of_berlin) is None
    await wait_for_return(workers, one, budget(tenant, limit_requests=1))


async def test_a_limit_that_is_added_later_counts_recorded_usage(workers: Workers, tenant: Tenant) -> None:
    first, second = await workers.start(2)
    dollars = budget(tenant, limit_usd=Decimal(10))
    reserved = await first.reserve([dollars], CallAmounts(nano_usd=1, requests=1), enforced=True)
    first.settle(reserved, CallAmounts(nano_usd=1, requests=1))
    async with workers.database.service() as session:
        await session.execute(
            text("UPDATE budget_leases SET recorded_requests = 5 WHERE budget_id = :id"), {"id": dollars.id}
        )
        await session.commit()
    both = budget(tenant, id=dollars.id, limit_usd=Decimal(10), limit_requests=6)
    assert [await reserve(second, both) is not None for _ in range(2)] == [True, False]


async def test_impossible_usage_of_a_provider_does_not_affect_other_budgets(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    mad, sane = budget(tenant, limit_tokens=10, action="warn"), budget(tenant, limit_requests=10)
    reserved = await reserve(one, mad)
    assert reserved is not None
    one.settle(reserved, CallAmounts(nano_usd=10**30, requests=1, tokens=10**30))
    await asyncio.sleep(0.7)
    assert (await workers.granted(mad))[2] == 2**62
    await wait_for_return(workers, one, sane)


async def test_a_spent_budget_in_dollars_refuses_before_any_work(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of, taking = budget(tenant, limit_usd=Decimal(1)), CallAmounts(nano_usd=10**9, requests=1)
    assert await reserve(one, of, taking) is not None
    assert await reserve(one, of, taking) is None
    assert one.exhausted([of]) is not None


async def test_a_worker_that_does_not_know_a_plans_new_limit_announces_nothing(
    platform: RunningPlatform, workers: Workers, tenant: Tenant
) -> None:
    (one,) = await workers.start(1)
    former = budget(tenant, id=tenant.id, limit_requests=10, plan=True)
    assert await reserve(one, former) is not None
    month = span("month", workers.clock.now(), ZoneInfo("UTC"))
    platform.sql(
        "SELECT set_config('gatehouse.operator', 'on', true), gatehouse_begin_budget(%s, %s, 'tenant', %s,"
        " to_timestamp(%s), to_timestamp(%s), 100)",
        [tenant.id, tenant.id, tenant.id, month.start, month.end],
    )
    announced = []
    for of, recorded in ((former, 10), (budget(tenant, id=tenant.id, limit_requests=100, plan=True), 85)):
        platform.sql("UPDATE budget_leases SET recorded_requests = %s WHERE writer_id = %s", [recorded, workers.ids[0]])
        request = LeaseRequest(
            of, month, False, True, NOTHING, (0, recorded, 0), (Waiting((0, 1, 0), announce=True),), NOTHING, None
        )
        async with workers.database.service() as session:
            await lease(session, workers.ids[0], [request])
            await session.commit()
        events = await workers.events(tenant, "usage_threshold") + await workers.events(tenant, "quota_exceeded")
        announced.append([(event.get("threshold"), event.get("monthly_limit")) for event in events])
    assert announced == [[], [(0.8, 100)]]


async def test_a_worker_that_stops_during_a_request_does_not_block_others(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=10)
    now = workers.clock.now()
    request = LeaseRequest(
        of,
        span("month", now, ZoneInfo("UTC")),
        True,
        True,
        NOTHING,
        NOTHING,
        (Waiting((0, 1, 0), announce=True),),
        NOTHING,
        None,
    )
    async with workers.database.service() as stopped:
        await lease(stopped, uuid4(), [request])
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(BudgetUnavailable):
                    await one.reserve([of], ONE, enforced=True)
                    break
        with contextlib.suppress(SQLAlchemyError):
            await stopped.commit()


async def test_a_time_zone_does_not_restart_the_plans_month(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    for zone, passes in (("UTC", True), ("Asia/Tokyo", False), ("America/New_York", False)):
        of = budget(tenant, zone, id=tenant.id, limit_requests=1, plan=True)
        assert (await reserve(one, of) is not None) == passes


async def test_a_groups_spending_is_of_the_current_month(
    platform: RunningPlatform, workers: Workers, tenant: Tenant
) -> None:
    metrics = platform.host.metrics
    one = Spender(workers.database, workers.clock, metrics)
    await one.start(uuid4())
    workers.all.append(one)
    of = budget(tenant, scope_type="group", scope_id=new_id(), limit_usd=Decimal(5))
    reserved = await one.reserve([of], CallAmounts(nano_usd=10**9, requests=1), enforced=True)
    one.settle(reserved, CallAmounts(nano_usd=10**9, requests=1))
    async with workers.database.service() as session:
        await session.execute(text("UPDATE budget_leases SET recorded_usd = 1 WHERE budget_id = :id"), {"id": of.id})
        await session.commit()
    shown = one._group_months
    async with asyncio.timeout(60):
        while shown[of.scope_id].spend_at(workers.clock.now()) != 1:
            await asyncio.sleep(0.1)
    workers.clock.move(31 * 86_400)
    assert shown[of.scope_id].spend_at(workers.clock.now()) == 0
