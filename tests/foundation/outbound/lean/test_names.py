"""AddressCache: looked up off the loop, judged, kept for a while, and looked up anew."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from ipaddress import ip_address

import pytest

from gatehouse.foundation.egress.guard import BlockedAddress, EgressGuard, HostNotFound
from gatehouse.foundation.outbound.lean import names as names_module
from gatehouse.foundation.outbound.lean.names import AddressCache


class Resolver:
    def __init__(self) -> None:
        self.addresses: list[str] = ["10.0.0.1"]
        self.lookup_count = 0
        self.free = threading.Event()
        self.free.set()

    def __call__(self, *_: object, **__: object) -> list[tuple[object, ...]]:
        self.lookup_count += 1
        self.free.wait(5)
        if not self.addresses:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in self.addresses]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    yield resolver
    resolver.free.set()


@pytest.fixture
def names() -> Iterator[AddressCache]:
    made = AddressCache(EgressGuard())
    yield made
    made.close()


async def resolved(names: AddressCache) -> list[str]:
    return [str(address) for address in await names.addresses("provider.example", 443, "private")]


async def test_a_name_is_looked_up_once_however_many_ask(names: AddressCache, resolver: Resolver) -> None:
    resolver.addresses = ["10.0.0.1", "10.0.0.2"]
    assert await asyncio.gather(*[resolved(names) for _ in range(20)]) == [["10.0.0.1", "10.0.0.2"]] * 20
    await resolved(names)
    assert resolver.lookup_count == 1


async def test_a_cancelled_lookup_does_not_affect_others(names: AddressCache, resolver: Resolver) -> None:
    resolver.free.clear()
    first, second = asyncio.create_task(resolved(names)), asyncio.create_task(resolved(names))
    await asyncio.sleep(0.02)
    first.cancel()
    resolver.free.set()
    assert await second == ["10.0.0.1"]


async def test_an_older_answer_serves_while_a_new_one_is_fetched(
    names: AddressCache, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await resolved(names)
    monkeypatch.setattr(names_module, "FRESH_SECONDS", 0.0)
    resolver.addresses = ["10.0.0.2"]
    resolver.free.clear()
    async with asyncio.timeout(1):
        assert await resolved(names) == ["10.0.0.1"]
    resolver.free.set()
    await asyncio.sleep(0.1)
    assert await resolved(names) == ["10.0.0.2"]


async def test_a_resolver_that_fails_leaves_the_last_answer_in_place_until_it_is_too_old(
    names: AddressCache, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await resolved(names)
    monkeypatch.setattr(names_module, "FRESH_SECONDS", 0.0)
    resolver.addresses = []
    assert await resolved(names) == ["10.0.0.1"]
    await asyncio.sleep(0.1)
    assert await resolved(names) == ["10.0.0.1"]
    monkeypatch.setattr(names_module, "USABLE_SECONDS", 0.0)
    with pytest.raises(HostNotFound):
        await resolved(names)


async def test_a_name_that_leads_out_of_bounds_now_is_not_used_any_more(
    names: AddressCache, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await resolved(names)
    monkeypatch.setattr(names_module, "FRESH_SECONDS", 0.0)
    # A single one is enough.
    resolver.addresses = ["10.0.0.2", "169.254.169.254"]
    await resolved(names)
    await asyncio.sleep(0.1)
    with pytest.raises(BlockedAddress):
        await resolved(names)


async def test_an_unreachable_address_is_resolved_again(names: AddressCache, resolver: Resolver) -> None:
    await resolved(names)
    names.forget("provider.example", "private")
    resolver.addresses = ["10.0.0.7"]
    assert await resolved(names) == ["10.0.0.7"]


async def test_an_address_needs_no_look_up(names: AddressCache, resolver: Resolver) -> None:
    assert await names.addresses("10.1.2.3", 443, "private") == (ip_address("10.1.2.3"),)
    assert resolver.lookup_count == 0
