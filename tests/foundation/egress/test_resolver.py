import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gatehouse.foundation.egress import resolver
from gatehouse.foundation.egress.guard import EgressGuard, HostNotFound

GUARD = EgressGuard()


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Yields an event. Names that begin with `slow` are resolved when it is set, so that their threads end."""
    event = threading.Event()

    def getaddrinfo(host: str, port: int, *_: object, **__: object) -> list[tuple[Any, ...]]:
        if host.startswith("slow"):
            event.wait(60)
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("8.8.8.8", "8.8.8.8")]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield event
    event.set()


async def resolved(name: str) -> list[str]:
    return [str(address) for address in await GUARD.resolve(GUARD.check(f"https://{name}.example/"))]


async def test_a_name_without_a_response_does_not_delay_other_names(over: threading.Event) -> None:
    slow = [asyncio.create_task(resolved(f"slow{number}")) for number in range(40)]
    await asyncio.sleep(0.1)
    async with asyncio.timeout(4):
        assert await resolved("quick") == ["8.8.8.8"]
    over.set()
    assert {type(ended) for ended in await asyncio.gather(*slow, return_exceptions=True)} == {HostNotFound}


async def test_a_look_up_beyond_the_limit_fails(over: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "_free", threading.BoundedSemaphore(1))
    slow = asyncio.create_task(resolved("slow"))
    await asyncio.sleep(0.1)
    with pytest.raises(HostNotFound):
        await resolved("quick")
    over.set()
    await asyncio.gather(slow, return_exceptions=True)
    assert await resolved("quick") == ["8.8.8.8"]


async def test_the_thread_of_a_cancelled_look_up_continues(over: threading.Event) -> None:
    slow = asyncio.create_task(resolved("slow"))
    await asyncio.sleep(0.1)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    over.set()
    assert await resolved("quick") == ["8.8.8.8"]
