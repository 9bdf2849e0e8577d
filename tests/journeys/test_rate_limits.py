"""Rate limits over several workers, and without Redis (docs/rate-limits.md)."""

import asyncio
from collections import Counter

import aiohttp
from tests.support.load import chat, load
from tests.support.redis import RedisServer
from tests.support.server import GatehouseServer

LIMITED = "/v1/chat/completions"


async def statuses(fleet: GatehouseServer, key: str, count: int) -> Counter[int]:
    """Return the statuses of this many concurrent requests, each over its own connection."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(fleet.url, connector=connector, headers=headers) as session:

        async def one() -> int:
            async with session.post(LIMITED, json=chat("sandbox/echo")) as answer:
                body = await answer.json()
                assert answer.headers["X-RateLimit-Limit"] == "60"
                if answer.status == 429:
                    assert body["error"]["type"] == "rate_limit_error"
                    assert 1 <= int(answer.headers["Retry-After"]) <= 60
                return answer.status

        return Counter(await asyncio.gather(*(one() for _ in range(count))))


async def test_exactly_60_of_500_concurrent_requests_pass_four_workers(fleet: GatehouseServer) -> None:
    assert len(fleet.workers) == 4
    key = fleet.new_key()
    assert await statuses(fleet, key, 500) == {200: 60, 429: 440}
    # No worker accepts a further request.
    assert await statuses(fleet, key, 40) == {429: 40}


async def test_one_users_keys_share_a_count_and_another_users_do_not(fleet: GatehouseServer) -> None:
    first, second = fleet.new_key(), fleet.new_key()
    answers = await asyncio.gather(statuses(fleet, first, 100), statuses(fleet, second, 100))
    assert answers == [{200: 60, 429: 40}, {200: 60, 429: 40}]


async def test_an_outage_of_redis_under_load_fails_no_request(fleet: GatehouseServer, redis: RedisServer) -> None:
    async with load(fleet.url, (30, fleet.key, chat("sandbox/echo"))) as callers:
        await callers.until(200)
        redis.kill()
        await callers.until(300)
        redis.start()
        await callers.until(300)
        redis.pause()
        try:
            await callers.until(300)
        finally:
            redis.resume()
        await callers.until(300)
    assert set(callers.statuses) == {200}


async def test_without_redis_each_worker_counts_by_itself(fleet: GatehouseServer, redis: RedisServer) -> None:
    key = fleet.new_key()
    redis.kill()
    try:
        answers = await statuses(fleet, key, 500)
    finally:
        redis.start()
    # Each of the four workers accepts at most 60 requests.
    assert 60 <= answers[200] <= 240
    assert set(answers) <= {200, 429}
