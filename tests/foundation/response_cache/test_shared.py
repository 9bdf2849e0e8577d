"""The response cache in a real Redis. Tests that are not about timeouts use a long timeout, as the tests of
counters."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.redis import RedisServer

from gatehouse.foundation.response_cache.shared import RedisCache

KEY = b"k" * 32
SECRET = b"s" * 32


@asynccontextmanager
async def caching(
    url: str, *, secret: bytes = SECRET, max_bytes: int = 10**6, budget: float = 5.0
) -> AsyncIterator[RedisCache]:
    cache = RedisCache(url, secret, max_bytes, timeout=budget)
    await cache.start()
    try:
        yield cache
    finally:
        await cache.close()


async def test_workers_share_answers_until_they_expire(server: RedisServer) -> None:
    async with caching(server.url) as first_cache, caching(server.url) as second_cache:
        assert await second_cache.get(KEY) is None
        first_cache.put(KEY, b"answer", 60)
        # The reply to a later command shows that Redis has executed the earlier one.
        await first_cache.get(KEY)
        assert await second_cache.get(KEY) == b"answer"
    [name] = server.client.keys()
    assert 0 < server.client.ttl(name) <= 60


async def test_redis_contains_neither_the_answer_nor_the_digest_of_the_request(server: RedisServer) -> None:
    async with caching(server.url) as cache:
        cache.put(KEY, b"the answer in clear", 60)
        assert await cache.get(KEY) == b"the answer in clear"
    [name] = server.client.keys()
    stored = name + server.client.get(name)
    assert b"clear" not in stored
    assert KEY not in stored
    assert KEY.hex().encode() not in stored


async def test_with_another_secret_no_entry_is_found(server: RedisServer) -> None:
    async with caching(server.url) as first_cache, caching(server.url, secret=b"t" * 32) as second_cache:
        first_cache.put(KEY, b"answer", 60)
        await first_cache.get(KEY)
        assert await second_cache.get(KEY) is None


async def test_a_moved_or_changed_answer_is_not_found(server: RedisServer) -> None:
    async with caching(server.url) as cache:
        cache.put(b"a" * 32, b"of a", 60)
        await cache.get(b"a" * 32)
        [first] = server.client.keys()
        cache.put(b"b" * 32, b"of b", 60)
        await cache.get(b"b" * 32)
        [second] = set(server.client.keys()) - {first}
        server.client.set(second, server.client.get(first))
        assert await cache.get(b"b" * 32) is None
        server.client.set(first, b"\xff nonsense")
        assert await cache.get(b"a" * 32) is None
        server.client.delete(first)
        server.client.lpush(first, "another type")
        assert await cache.get(b"a" * 32) is None


async def test_the_bytes_that_a_worker_stores_in_redis_are_limited(server: RedisServer) -> None:
    async with caching(server.url, max_bytes=10_000) as cache:
        for number in range(40):
            cache.put(bytes([number]) * 32, bytes(1_000), 60)
        results = [await cache.get(bytes([number]) * 32) is not None for number in range(40)]
    assert results[-3:] == [True] * 3
    assert not any(results[:30])
    assert len(server.client.keys()) == sum(results)
    assert cache.bytes <= 10_000


async def test_without_redis_no_entry_is_found_and_no_call_waits() -> None:
    async with caching("redis://127.0.0.1:1/0") as cache:
        began = time.monotonic()
        for _ in range(100):
            cache.put(KEY, b"answer", 60)
            assert await cache.get(KEY) is None
        # A hundred waits of 50 ms would take five seconds.
        assert time.monotonic() - began < 4.0


async def test_a_paused_redis_delays_one_call_and_is_used_again(server: RedisServer) -> None:
    async with caching(server.url, budget=0.05) as cache:
        server.pause()
        began = time.monotonic()
        assert await asyncio.gather(*[cache.get(KEY) for _ in range(200)]) == [None] * 200
        cache.put(KEY, b"lost", 60)
        # Sequential timeouts would take ten seconds.
        assert time.monotonic() - began < 5.0
        server.resume()
        for _ in range(1000):
            cache.put(KEY, b"found", 60)
            if await cache.get(KEY) == b"found":
                break
            await asyncio.sleep(0.01)
        assert await cache.get(KEY) == b"found"


async def test_a_full_redis_caches_nothing_and_keeps_serving(server: RedisServer) -> None:
    server.client.config_set("maxmemory", 1)
    async with caching(server.url) as cache:
        cache.put(KEY, b"answer", 60)
        assert await cache.get(KEY) is None
        server.client.config_set("maxmemory", 0)
        cache.put(KEY, b"answer", 60)
        assert await cache.get(KEY) == b"answer"
