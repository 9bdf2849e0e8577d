"""Sign-in attempts are counted over all workers, also without Redis (docs/rate-limits.md)."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from uuid import uuid4

import aiohttp
import pytest
from tests.support.redis import RedisServer
from tests.support.server import ADMIN_EMAIL, ADMIN_PASSWORD, GatehouseServer

LOGIN = "/api/auth/login"


@pytest.fixture(scope="module")
def alone() -> Iterator[GatehouseServer]:
    """A server with four workers and without Redis. Counting by address has its own test."""
    with GatehouseServer(
        workers=4, env={"RATE_LIMIT_TIERS": '{"/api/auth/login": 1000, "/api/auth/register": 10}'}
    ) as it:
        yield it


async def posted(
    server: GatehouseServer, path: str, body: Callable[[int], object], count: int = 60, *, after: float = 0
) -> Counter[int]:
    """Return the statuses of these concurrent requests. Each uses its own connection, so any worker may get it. `after`
    is the number of seconds between two requests."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(server.url, connector=connector) as session:

        async def one(number: int) -> int:
            await asyncio.sleep(after * number)
            async with session.post(path, json=body(number)) as answer:
                if answer.status == 429:
                    assert 1 <= int(answer.headers["Retry-After"]) <= 60
                return answer.status

        return Counter(await asyncio.gather(*(one(number) for number in range(count))))


def wrong(email: str) -> Callable[[int], object]:
    return lambda number: {"email": email if number % 2 else email.upper(), "password": f"wrong password {number}"}


def somebody() -> str:
    return f"{uuid4().hex[:12]}@example.test"


async def test_of_60_concurrent_passwords_exactly_10_are_checked_without_redis(alone: GatehouseServer) -> None:
    assert len(alone.workers) == 4
    email = somebody()
    assert await posted(alone, LOGIN, wrong(email)) == {401: 10, 429: 50}
    # No attempt is left on any worker; another account has its own count.
    assert await posted(alone, LOGIN, wrong(email), 12) == {429: 12}
    assert await posted(alone, LOGIN, wrong(somebody()), 12) == {401: 10, 429: 2}


async def test_a_correct_password_counts_as_an_attempt(alone: GatehouseServer) -> None:
    right = {"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}
    assert await posted(alone, LOGIN, lambda _: right) == {200: 10, 429: 50}


async def test_registrations_count_by_address_over_all_workers(alone: GatehouseServer) -> None:
    new = {"email": somebody(), "password": "a password of theirs", "invitation_token": "inv_of_nobody"}
    answers = await posted(alone, "/api/auth/register", lambda _: new)
    assert answers.pop(429) == 50
    assert sum(answers.values()) == 10


async def test_of_60_concurrent_passwords_exactly_10_are_checked_with_redis(fleet: GatehouseServer) -> None:
    assert await posted(fleet, LOGIN, wrong(somebody())) == {401: 10, 429: 50}


async def test_a_killed_redis_permits_no_further_attempts(fleet: GatehouseServer, redis: RedisServer) -> None:
    email = somebody()
    trying = asyncio.create_task(posted(fleet, LOGIN, wrong(email), 30, after=0.02))
    await asyncio.sleep(0.1)
    redis.kill()
    try:
        first = await trying
        while_away = await posted(fleet, LOGIN, wrong(email), 30)
    finally:
        redis.start()
    # Each worker reconnects to Redis within a second.
    await asyncio.sleep(1.5)
    back = await posted(fleet, LOGIN, wrong(email), 30)
    assert first + while_away + back == {401: 10, 429: 80}


async def test_attempts_at_one_account_do_not_block_others(alone: GatehouseServer) -> None:
    """Many attempts at one account wait only for each other and do not delay others."""
    email, stop = somebody(), asyncio.Event()

    async def guess() -> None:
        while not stop.is_set():
            await posted(alone, LOGIN, wrong(email), 60)

    guessing = asyncio.create_task(guess())
    try:
        await asyncio.sleep(1)
        began = time.monotonic()
        assert await posted(alone, LOGIN, wrong(somebody()), 5) == {401: 5}
        assert time.monotonic() - began < 5
    finally:
        stop.set()
        await guessing
