"""Randomly damaged responses, reset connections and cancelled calls. Each call has one outcome and frees its
connection."""

import asyncio
import gzip
import random
from collections.abc import Callable

import pytest
from tests.support.receiver import serving, trusting
from tests.support.tasks import until_ended
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.outbound import OutboundFailed, OutboundRequest
from gatehouse.foundation.outbound.lean.outbound import LeanOutbound

PACKED = gzip.compress(b"hello there" * 20)
ANSWERS = [
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\nhello there",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n there\r\n0\r\nx-sum: 1\r\n\r\n",
    b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=9\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(PACKED), PACKED),
    b"HTTP/1.0 200 OK\r\n\r\nhello",
]
INSERTED = [
    b"\r\n",
    b"\n",
    b"\0",
    b":",
    b" ",
    b"\xff",
    b"content-length: 1\r\n",
    b"HTTP/1.1 100 C\r\n\r\n",
    b"0\r\n\r\n",
]


def spoilt(dice: random.Random) -> bytes:
    answer = bytearray(dice.choice(ANSWERS))
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(answer))
        match dice.randrange(3):
            case 0:
                answer[at] = dice.randrange(256)
            case 1:
                del answer[at : at + dice.randint(1, 4)]
            case _:
                answer[at:at] = dice.choice(INSERTED)
        answer = answer or bytearray(b"x")
    return bytes(answer)


async def ask(outbound: LeanOutbound, url: str, **changes: float) -> bytes:
    reply = await outbound.send(OutboundRequest(method="POST", url=url, headers={}, body=b"{}", **changes))
    try:
        return await reply.read(10_000)
    finally:
        await reply.close()


async def settled(outbound: LeanOutbound) -> None:
    for _ in range(100):
        if not outbound._pool._hosts:
            break
        await asyncio.sleep(0.01)
    assert (outbound._pool._calls, outbound._pool._idle) == (0, 0)
    assert not outbound._pool._hosts
    assert not outbound._pool._open


@pytest.mark.parametrize("seed", range(4))
async def test_a_damaged_response_is_a_response_or_a_failure_and_frees_its_connection(
    lean: LeanOutbound, seed: int
) -> None:
    dice = random.Random(seed)

    async def behave(connection: Connection) -> None:
        answer = spoilt(dice)
        at = dice.randrange(len(answer) + 1)
        await connection.send(answer[:at])
        await asyncio.sleep(0)
        await connection.send(answer[at:])
        if dice.random() < 0.2:
            connection.writer.transport.abort()
        elif dice.random() < 0.8:
            raise ConnectionError

    before = asyncio.all_tasks()
    async with upstream(behave) as server:
        for _ in range(150):
            try:
                await ask(lean, server.url, first_byte_timeout=0.05, idle_timeout=0.05)
            except OutboundFailed:
                continue
    await settled(lean)
    await until_ended(before)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
async def test_calls_cancelled_at_any_time_free_their_connections(
    make_lean: Callable[..., LeanOutbound], tls: bool
) -> None:
    lean = make_lean(tls=trusting())

    async def behave(connection: Connection) -> None:
        await asyncio.sleep(0.001)
        for byte in ANSWERS[1]:
            await connection.send(bytes([byte]))
            if byte % 7 == 0:
                await asyncio.sleep(0)

    before = asyncio.all_tasks()
    async with upstream(behave, tls=serving() if tls else None) as server:
        for turn in range(100):
            call = asyncio.create_task(ask(lean, server.url))
            for _ in range(turn):
                await asyncio.sleep(0)
            # A handshake takes a few iterations of the loop, each with a wait for the server.
            await asyncio.sleep(0.0002 * turn if tls else 0)
            call.cancel()
            await asyncio.wait([call])
        assert await ask(lean, server.url) == b"hello there"
    await settled(lean)
    await until_ended(before)


async def test_a_call_after_a_cancelled_call_receives_its_own_response(lean: LeanOutbound) -> None:
    async def behave(connection: Connection) -> None:
        await asyncio.sleep(0.002 if connection.body == b"slow" else 0)
        await connection.answer(connection.body)

    async def one(number: int) -> None:
        body = b"slow" if number % 2 else b"%d" % number
        reply = await lean.send(OutboundRequest(method="POST", url=server.url, headers={}, body=body))
        try:
            assert await reply.read(10) == body
        finally:
            await reply.close()

    async with upstream(behave) as server:
        for round_ in range(40):
            calls = [asyncio.create_task(one(number)) for number in range(8)]
            for _ in range(round_ % 13):
                await asyncio.sleep(0)
            for call in calls[1::2]:
                call.cancel()
            for item in await asyncio.gather(*calls, return_exceptions=True):
                assert item is None or isinstance(item, asyncio.CancelledError)
