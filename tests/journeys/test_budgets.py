"""Budgets over four workers as real processes: concurrent calls do not exceed the limit, with and without Redis and
after kill -9, and the spent amounts equal the recorded usage."""

import asyncio
import time
from collections import Counter
from decimal import Decimal
from typing import Any
from uuid import UUID

import aiohttp
import httpx2
import pytest
from tests.support.load import chat
from tests.support.redis import RedisServer
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT

#: four processes start, and are killed
pytestmark = pytest.mark.timeout(300)

#: the fleet limits requests on `/v1/chat/completions`
PATH = "/api/chat/completions"
BASE = "/api/admin/budgets"


@pytest.fixture
def somebody(fleet: GatehouseServer) -> tuple[str, UUID]:
    """Create a user and return the user's key and id."""
    key = fleet.new_key()
    ((user_id,),) = fleet.sql("SELECT user_id FROM api_keys WHERE id = %s", [fleet.key_id(key)])
    return key, user_id


async def made(admin: httpx2.AsyncClient, user_id: UUID, **limits: Any) -> dict[str, Any]:
    body = {"scope_type": "user", "scope_id": str(user_id), "period": "month", **limits}
    answer = await admin.post(BASE, json=body)
    assert answer.status_code == 201, answer.text
    budget: dict[str, Any] = answer.json()
    return budget


async def statuses(fleet: GatehouseServer, key: str, count: int, model: str = "sandbox/echo") -> Counter[int]:
    """Return the statuses of this many concurrent requests, each over its own connection."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(fleet.url, connector=connector, headers=headers) as session:

        async def one() -> int:
            async with session.post(PATH, json=chat(model)) as answer:
                body = await answer.json()
                if answer.status == 429:
                    assert body["error"]["code"] == "quota_exceeded"
                return answer.status

        return Counter(await asyncio.gather(*(one() for _ in range(count))))


async def spent(admin: httpx2.AsyncClient, budget: dict[str, Any], requests: int) -> dict[str, Any]:
    """Wait for this many recorded requests and return the budget's current usage."""
    async with asyncio.timeout(60):
        while True:
            current: dict[str, Any] = (await admin.get(f"{BASE}/{budget['id']}")).json()["current"]
            if current["spent_requests"] == requests:
                return current
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("with_redis", [True, False])
async def test_exactly_50_of_200_concurrent_calls_over_four_workers_pass(
    fleet: GatehouseServer, admin: httpx2.AsyncClient, redis: RedisServer, somebody: tuple[str, UUID], with_redis: bool
) -> None:
    key, user_id = somebody
    budget = await made(admin, user_id, limit_requests=50)
    if not with_redis:
        redis.kill()
    try:
        assert await statuses(fleet, key, 200) == {200: 50, 429: 150}
        assert await statuses(fleet, key, 20) == {429: 20}
    finally:
        if not with_redis:
            redis.start()
    await spent(admin, budget, 50)


async def test_spending_never_exceeds_the_limit_and_equals_the_recorded_cost(
    fleet: GatehouseServer, admin: httpx2.AsyncClient, somebody: tuple[str, UUID]
) -> None:
    """Each call reserves more than it uses. The difference is released, until no further call fits."""
    key, user_id = somebody
    fleet.sql(
        "INSERT INTO model_configs (id, tenant_id, provider, model_id, cost_per_input_token, cost_per_output_token,"
        " max_output_tokens) VALUES (%s, %s, 'sandbox', 'tokens-50-90', 0.0001, 0.001, 100)",
        [new_id(), DEFAULT_TENANT],
    )
    fleet.touch("policy", DEFAULT_TENANT)
    fleet.settled()
    budget = await made(admin, user_id, limit_usd=1)
    passed = 0
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        answers = await statuses(fleet, key, 20, "sandbox/tokens-50-90")
        assert set(answers) <= {200, 429}
        passed += answers[200]
        if not answers[200]:
            break
        # Unused reservations are available to all workers after two updates of the leases.
        await asyncio.sleep(2)
    current = await spent(admin, budget, passed)
    ((on_record,),) = fleet.sql("SELECT sum(cost_usd) FROM usage_records WHERE user_id = %s", [user_id])
    assert 0.7 < current["spent_usd"] <= 1
    assert Decimal(str(current["spent_usd"])) == on_record


async def test_the_lease_of_a_killed_worker_is_released_and_the_limit_holds(
    fleet: GatehouseServer, admin: httpx2.AsyncClient, somebody: tuple[str, UUID]
) -> None:
    key, user_id = somebody
    budget = await made(admin, user_id, limit_requests=30)
    # Forty slow concurrent streams: thirty are accepted, and are open when their workers are killed.
    waiting = asyncio.create_task(statuses_of_broken(fleet, key, 40))
    await asyncio.sleep(1.5)
    for worker in fleet.workers:
        worker.kill()
    finished = (await waiting)[200]
    assert finished == 0
    async with asyncio.timeout(60):
        while len(fleet.workers) < 4 or not await ready(admin):
            await asyncio.sleep(0.2)
    # The usage of these streams is unknown, so they do not count once the journals are stored.
    passed = 0
    async with asyncio.timeout(60):
        while passed < 30:
            answers = await statuses(fleet, key, 10)
            passed += answers[200]
            await asyncio.sleep(0.3)
    assert passed == 30
    assert await statuses(fleet, key, 10) == {429: 10}
    await spent(admin, budget, 30)


async def ready(admin: httpx2.AsyncClient) -> bool:
    try:
        return (await admin.get("/api/health/ready")).status_code == 200
    except httpx2.HTTPError:
        return False


async def statuses_of_broken(fleet: GatehouseServer, key: str, count: int) -> Counter[int]:
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(fleet.url, connector=connector, headers=headers) as session:

        async def one() -> int:
            try:
                async with session.post(PATH, json=chat("sandbox/slow-60000ms")) as answer:
                    return answer.status
            except aiohttp.ClientError:
                return 0

        return Counter(await asyncio.gather(*(one() for _ in range(count))))
