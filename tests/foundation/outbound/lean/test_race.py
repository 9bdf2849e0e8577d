"""Several addresses: the first that answers."""

import asyncio

import pytest

from gatehouse.foundation.outbound.lean import race


async def test_one_that_hangs_holds_nobody_up_and_is_dropped() -> None:
    begun: list[str] = []
    ended: list[str] = []

    async def attempt(address: str) -> str:
        begun.append(address)
        try:
            if address == "hangs":
                await asyncio.sleep(5)
            return address
        finally:
            ended.append(address)

    async with asyncio.timeout(2):
        assert await race.first(["hangs", "good", "spare"], attempt, lambda _: None) == "good"
    await asyncio.sleep(0)
    assert begun == ["hangs", "good"]
    assert sorted(ended) == ["good", "hangs"]


async def test_one_that_refuses_is_followed_at_once_by_the_next() -> None:
    async def attempt(address: str) -> str:
        if address != "good":
            raise ConnectionRefusedError
        return address

    async with asyncio.timeout(race.ATTEMPT_DELAY_SECONDS / 2):
        assert await race.first(["bad", "bad", "good"], attempt, lambda _: None) == "good"


async def test_if_no_candidate_answers_the_last_refusal_is_returned() -> None:
    async def attempt(address: str) -> str:
        raise ConnectionRefusedError(address)

    with pytest.raises(ConnectionRefusedError):
        await race.first(["one", "two"], attempt, lambda _: None)


async def test_one_that_comes_second_is_dropped() -> None:
    dropped: list[str] = []

    async def attempt(address: str) -> str:
        try:
            await asyncio.sleep(race.ATTEMPT_DELAY_SECONDS + 0.1)
        except asyncio.CancelledError:
            # It was there already when nobody wanted it any more.
            return address
        return address

    assert await race.first(["one", "two"], attempt, dropped.append) == "one"
    await asyncio.sleep(0.01)
    assert dropped == ["two"]
