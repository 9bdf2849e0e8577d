"""The limits of concurrent and waiting calls."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable

import pytest
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.outbound import NoConnectionFree, Outbound, OutboundReply, OutboundRequest
from gatehouse.foundation.outbound.lean.outbound import LeanOutbound
from gatehouse.foundation.outbound.lean.pool import ConnectionPool, PoolLimits
from gatehouse.foundation.outbound.lean.route import Origin

Make = Callable[..., LeanOutbound]
A, B = Origin("a", 80, False, None), Origin("b", 80, False, None)


async def echo(connection: Connection) -> None:
    await connection.answer(connection.body)


async def ask(outbound: Outbound, url: str, wait: float = 1.0) -> OutboundReply:
    return await outbound.send(OutboundRequest(method="POST", url=url, headers={}, body=b"{}", connect_timeout=wait))


async def test_the_limit_of_one_provider_does_not_exceed_the_total(make_lean: Make) -> None:
    carrier = make_lean(3, max_per_provider=2)
    async with upstream(echo) as first_provider, upstream(echo) as second_provider:
        replies = [await ask(carrier, first_provider.url) for _ in range(2)]
        replies.append(await ask(carrier, second_provider.url))
        with pytest.raises(NoConnectionFree):
            await ask(carrier, second_provider.url, 0.05)
        for item in replies:
            await item.close()


async def test_a_waiting_call_starts_when_another_call_ends(make_lean: Make) -> None:
    carrier = make_lean(1)
    async with upstream(echo) as server:
        first = await ask(carrier, server.url)
        second = asyncio.create_task(ask(carrier, server.url))
        await asyncio.sleep(0.05)
        assert not second.done()
        await first.close()
        await (await asyncio.wait_for(second, 1)).close()


async def test_a_burst_of_calls_waits_even_if_few_may_be_in_progress(make_lean: Make) -> None:
    carrier = make_lean(2)

    async def one(url: str) -> int:
        reply = await ask(carrier, url, 5.0)
        await reply.close()
        return reply.status

    async with upstream(echo) as server:
        assert set(await asyncio.gather(*(one(server.url) for _ in range(100)))) == {200}


async def test_a_waiting_call_that_is_cancelled_at_the_end_of_another_call_is_skipped() -> None:
    pool = ConnectionPool(PoolLimits(1, 1, 5), 30.0)
    first_call = pool.enter(A)
    assert first_call is not None
    gone, next_one = (asyncio.create_task(pool.wait(A, 5)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    pool.leave(first_call)
    pool.leave(await asyncio.wait_for(next_one, 1))
    assert (gone.cancelled(), pool._calls, pool._hosts) == (True, 0, {})


async def test_a_call_beyond_the_limit_of_waiting_calls_is_refused_immediately() -> None:
    pool = ConnectionPool(PoolLimits(2, 2, 2), 30.0)
    hosts = [pool.enter(A), pool.enter(A)]
    assert pool.enter(A) is None
    waiting = [asyncio.create_task(pool.wait(A, 5)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(NoConnectionFree):
        await asyncio.wait_for(pool.wait(A, 5), 0.1)
    for host in hosts:
        assert host is not None
        pool.leave(host)
    for waiter in waiting:
        pool.leave(await waiter)
    assert pool.enter(A) is not None


async def test_waiting_providers_are_served_in_turn() -> None:
    pool = ConnectionPool(PoolLimits(1, 1, 10), 30.0)
    first_call = pool.enter(A)
    order: list[str] = []

    async def one(origin: Origin) -> None:
        host = pool.enter(origin) or await pool.wait(origin, 5)
        order.append(host.origin.host)
        await asyncio.sleep(0)
        pool.leave(host)

    tasks = []
    for origin in (A, A, A, B, B):
        tasks.append(asyncio.create_task(one(origin)))
        await asyncio.sleep(0)
    assert first_call is not None
    pool.leave(first_call)
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "a", "b", "a"]


async def test_no_capacity_is_lost_when_waits_are_cancelled_at_any_time() -> None:
    pool = ConnectionPool(PoolLimits(3, 2, 50), 30.0)
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def one(number: int) -> None:
        origin = (A, B)[number % 2]
        host = pool.enter(origin) or await pool.wait(origin, 0.005 + number % 7 / 500)
        try:
            running[host.origin.host] += 1
            most[host.origin.host] = max(most[host.origin.host], running[host.origin.host])
            most["all"] = max(most["all"], running.total())
            await asyncio.sleep(number % 5 / 1000)
        finally:
            running[host.origin.host] -= 1
            pool.leave(host)

    tasks = [asyncio.create_task(one(number)) for number in range(80)]
    for number, task in enumerate(tasks):
        if number % 3 == 0:
            task.cancel()
        if number % 10 == 0:
            await asyncio.sleep(0.001)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most["all"] <= 3
    assert max(most["a"], most["b"]) <= 2
    free = [pool.enter(A), pool.enter(A), pool.enter(B)]
    assert None not in free
    for host in free:
        assert host is not None
        pool.leave(host)
    assert not pool._hosts


async def test_idle_connections_count_and_the_oldest_is_closed_first(make_lean: Make) -> None:
    carrier = make_lean(2)
    async with upstream(echo) as one, upstream(echo) as two, upstream(echo) as three:
        for server in (one, two, three):
            reply = await ask(carrier, server.url)
            await reply.read(10)
            await reply.close()
        await asyncio.wait_for(one.closed_by_client.wait(), 1)
        assert not two.closed_by_client.is_set()


async def test_unused_providers_are_forgotten(lean: LeanOutbound) -> None:
    for _ in range(3):
        async with upstream(echo) as server:
            reply = await ask(lean, server.url)
            await reply.read(10)
            await reply.close()
    for _ in range(100):
        if not lean._pool._hosts:
            break
        await asyncio.sleep(0.01)
    assert not lean._pool._hosts
    assert not lean._pool._open


async def test_concurrent_calls_share_one_look_up(make_lean: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []

    def getaddrinfo(*query: object, **_: object) -> list[tuple[object, ...]]:
        looked.append(query)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    carrier = make_lean(10)
    async with upstream(echo) as server:
        url = server.url.replace("127.0.0.1", "provider.example")

        async def one() -> bytes:
            reply = await ask(carrier, url, 5.0)
            try:
                return await reply.read(10)
            finally:
                await reply.close()

        answers = await asyncio.gather(*[one() for _ in range(20)])
        assert set(answers) == {b"{}"}
        assert server.connections == 10
    assert len(looked) == 1
