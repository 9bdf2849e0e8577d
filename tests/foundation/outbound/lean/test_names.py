"""AddressCache: names are resolved outside the loop, checked, cached for a while, and resolved again."""

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
    cache = AddressCache(EgressGuard())
    yield cache
    cache.close()


async def resolved(names: AddressCache) -> list[str]:
    return [str(address) for address in await names.addresses("provider.example", 443, "private")]


async def test_concurrent_callers_share_one_look_up(names: AddressCache, resolver: Resolver) -> None:
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


async def test_old_addresses_are_used_while_new_ones_are_looked_up(
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


async def test_after_a_failed_look_up_the_last_addresses_are_used_until_they_are_too_old(
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


async def test_a_name_with_a_refused_address_is_no_longer_used(
    names: AddressCache, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await resolved(names)
    monkeypatch.setattr(names_module, "FRESH_SECONDS", 0.0)
    # A single refused address is enough.
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


async def test_a_literal_address_needs_no_look_up(names: AddressCache, resolver: Resolver) -> None:
    assert await names.addresses("10.1.2.3", 443, "private") == (ip_address("10.1.2.3"),)
    assert resolver.lookup_count == 0
