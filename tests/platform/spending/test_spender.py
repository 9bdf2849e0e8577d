"""Budgets over several workers and a real ledger: what passes, what is refused, what comes back."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text
from tests.support.clock import HandClock
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.ports import Reserved
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.spending.spender import BudgetUnavailable, QuotaExceeded, Spender
from gatehouse.policy.budgets import Budget, BudgetRecord, Taking, compile_budget

ONE = Taking(requests=1)


def budget(tenant: Tenant, **fields: Any) -> Budget:
    record = BudgetRecord(
        **{"id": new_id(), "scope_type": "tenant", "scope_id": tenant.id, "period": "month", **fields}
    )
    return compile_budget(record, TenantId(tenant.id), ZoneInfo("UTC"))


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


async def tried(spender: Spender, of: Budget, taking: Taking = ONE, *, enforced: bool = True) -> Reserved | None:
    try:
        return await spender.reserve([of], taking, enforced=enforced)
    except QuotaExceeded:
        return None


async def test_of_200_at_once_over_four_workers_exactly_50_pass(workers: Workers, tenant: Tenant) -> None:
    four, of = await workers.start(4), budget(tenant, limit_requests=50)
    passed = await asyncio.gather(*(tried(four[n % 4], of) for n in range(200)))
    assert sum(each is not None for each in passed) == 50
    assert (await workers.granted(of))[1] == 50


async def test_what_is_set_aside_and_not_used_serves_others(workers: Workers, tenant: Tenant) -> None:
    four, of = await workers.start(4), budget(tenant, limit_usd=Decimal(1))
    dear = Taking(nano_usd=400_000_000, requests=1)
    first, second = await tried(four[0], of, dear), await tried(four[1], of, dear)
    assert first is not None
    assert second is not None
    assert await tried(four[2], of, dear) is None
    four[0].settle(first, Taking(nano_usd=1_000_000, requests=1))
    four[1].settle(second, None)
    async with asyncio.timeout(5):
        while (third := await tried(four[2], of, dear)) is None:
            await asyncio.sleep(0.1)
    four[2].settle(third, Taking(nano_usd=400_000_000, requests=1))
    # 1 - .001 - .4: what is left is known to the billionth.
    assert await tried(four[3], of, Taking(nano_usd=599_000_001, requests=1)) is None
    async with asyncio.timeout(5):
        while await tried(four[3], of, Taking(nano_usd=599_000_000, requests=1)) is None:
            await asyncio.sleep(0.1)


async def test_a_refusal_says_when_it_begins_anew_and_one_event_tells_listeners(
    workers: Workers, tenant: Tenant
) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=1, scope_type="user", scope_id=tenant.user.id, period="day")
    await one.reserve([of], ONE, enforced=True)
    for _ in range(3):
        with pytest.raises(QuotaExceeded) as refused:
            await one.reserve([of], ONE, enforced=True)
    told = refused.value
    end = int(told.headers["X-RateLimit-Reset"])
    assert end % 86_400 == 0
    assert 0 < end - workers.clock.now() <= 86_400
    assert told.extra["tier"] == "user:day"
    assert told.headers["X-Budget-Remaining-Requests"] == "0"
    assert one.exhausted([of]) is not None
    (event,) = await workers.events(tenant, "quota_exceeded")
    assert event == {
        "user_id": str(tenant.user.id), "group_id": None, "limit_type": "requests_day", "limit_value": 1,
        "current_usage": 1, "reset_at": told.text[told.text.index("anew at ") + 8 : -1],
    }  # fmt: skip


async def test_a_budget_that_warns_refuses_nobody_and_tells(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=2, action="warn")
    for _ in range(5):
        assert await tried(one, of) is not None
    async with asyncio.timeout(5):
        while not await workers.events(tenant, "quota_exceeded"):
            await asyncio.sleep(0.1)


async def test_the_next_period_has_room_again(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=1, period="minute")
    assert await tried(one, of) is not None
    assert await tried(one, of) is None
    workers.clock.move(60)
    assert await tried(one, of) is not None


async def test_a_changed_limit_holds_for_the_next_call(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=100)
    for _ in range(10):
        assert await tried(one, of) is not None
    assert await tried(one, budget(tenant, id=of.id, limit_requests=10)) is None
    assert await tried(one, budget(tenant, id=of.id, limit_requests=11)) is not None


async def test_what_nobody_needs_is_given_back(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=1_000)
    for _ in range(30):
        reserved = await tried(one, of)
        assert reserved is not None
        one.settle(reserved, ONE)
    async with asyncio.timeout(5):
        while (await workers.granted(of))[1] != 30:
            await asyncio.sleep(0.1)


async def test_a_worker_that_forgot_a_quiet_budget_knows_what_it_has_spent(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, limit_requests=3)
    reserved = await tried(one, of)
    assert reserved is not None
    one.settle(reserved, ONE)
    await asyncio.sleep(1.2)
    one._accounts.clear()
    assert [await tried(one, of) is not None for _ in range(3)] == [True, True, False]


async def test_steps_towards_the_plan_s_limit_are_told_once_each(workers: Workers, tenant: Tenant) -> None:
    (one,) = await workers.start(1)
    of = budget(tenant, id=tenant.id, limit_requests=10, plan=True)
    recorded = text("UPDATE budget_leases SET recorded_requests = :n WHERE budget_id = :id AND writer_id = :writer")
    for n in range(1, 12):
        reserved = await tried(one, of)
        assert (reserved is None) == (n == 11)
        if reserved is not None:
            one.settle(reserved, ONE)
        async with workers.database.service() as session:
            await session.execute(recorded, {"n": min(n, 10), "id": of.id, "writer": workers.ids[0]})
            await session.commit()
    async with asyncio.timeout(5):
        while len(told := await workers.events(tenant, "usage_threshold")) < 3:
            await asyncio.sleep(0.1)
    assert [(event["threshold"], event["monthly_limit"], event["org_id"]) for event in told] == [
        (0.8, 10, str(tenant.id)), (0.9, 10, str(tenant.id)), (1.0, 10, str(tenant.id)),
    ]  # fmt: skip


async def test_without_the_database_what_was_granted_is_spent_and_then_nobody_is_let_in(
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
