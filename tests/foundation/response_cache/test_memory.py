import pytest
from tests.support.clock import HandClock

from gatehouse.foundation.response_cache.memory import MemoryCache

KEY = b"k" * 32


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


async def test_an_entry_is_found_until_it_expires(clock: HandClock) -> None:
    cache = MemoryCache(10_000, clock)
    assert await cache.get(KEY) is None
    cache.put(KEY, b"answer", 60)
    clock.move(59.9)
    assert await cache.get(KEY) == b"answer"
    clock.move(0.2)
    assert await cache.get(KEY) is None
    assert cache.bytes == 0


async def test_the_least_recently_used_entry_is_removed_first(clock: HandClock) -> None:
    cache = MemoryCache(4_200, clock)
    for name in (b"a", b"b", b"c"):
        cache.put(name, bytes(1_000), 60)
    assert await cache.get(b"a") is not None
    cache.put(b"d", bytes(1_000), 60)
    assert [await cache.get(name) is not None for name in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    assert cache.bytes <= 4_200


async def test_the_size_of_the_cache_is_limited(clock: HandClock) -> None:
    cache = MemoryCache(50_000, clock)
    for number in range(5_000):
        cache.put(str(number % 700).encode(), bytes(number * 37 % 9_000), 60)
        assert cache.bytes <= 50_000
    cached_values = [value for number in range(700) if (value := await cache.get(str(number).encode())) is not None]
    assert cached_values
    assert sum(map(len, cached_values)) < cache.bytes


async def test_an_entry_larger_than_the_cache_removes_no_other_entry(clock: HandClock) -> None:
    cache = MemoryCache(2_000, clock)
    cache.put(b"small", b"x", 60)
    cache.put(b"large", bytes(2_000), 60)
    assert await cache.get(b"small") == b"x"
    assert await cache.get(b"large") is None


async def test_a_newer_answer_replaces_the_old_one(clock: HandClock) -> None:
    cache = MemoryCache(2_000, clock)
    cache.put(KEY, b"old", 60)
    cache.put(KEY, b"new", 60)
    assert await cache.get(KEY) == b"new"
    cache.put(KEY, b"", 60)
    assert cache.bytes < 1_000
