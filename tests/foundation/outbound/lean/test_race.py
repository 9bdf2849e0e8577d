"""Connections to the first of several addresses that responds."""

import asyncio

import pytest

from gatehouse.foundation.outbound.lean import race


async def test_an_address_without_a_response_does_not_delay_the_next_and_is_dropped() -> None:
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


async def test_after_a_refusal_the_next_address_is_tried_immediately() -> None:
    async def attempt(address: str) -> str:
        if address != "good":
            raise ConnectionRefusedError
        return address

    async with asyncio.timeout(race.ATTEMPT_DELAY_SECONDS / 2):
        assert await race.first(["bad", "bad", "good"], attempt, lambda _: None) == "good"


async def test_if_all_addresses_fail_the_last_error_is_raised() -> None:
    async def attempt(address: str) -> str:
        raise ConnectionRefusedError(address)

    with pytest.raises(ConnectionRefusedError):
        await race.first(["one", "two"], attempt, lambda _: None)


async def test_the_second_connection_is_dropped() -> None:
    dropped: list[str] = []

    async def attempt(address: str) -> str:
        try:
            await asyncio.sleep(race.ATTEMPT_DELAY_SECONDS + 0.1)
        except asyncio.CancelledError:
            # The second attempt had already succeeded when the first result was returned.
            return address
        return address

    assert await race.first(["one", "two"], attempt, dropped.append) == "one"
    await asyncio.sleep(0.01)
    assert dropped == ["two"]
