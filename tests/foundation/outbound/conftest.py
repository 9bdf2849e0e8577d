"""Fixtures for both HTTP clients. The tests run on both event loops, because the server uses uvloop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvloop

from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.outbound.lean.outbound import LeanOutbound

Make = Callable[..., Outbound]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def _closing(kind: Callable[..., Any]) -> AsyncIterator[Make]:
    clients: list[Outbound] = []

    def make(most: int = 8, **options: object) -> Outbound:
        clients.append(kind(most, **options))
        return clients[-1]

    yield make
    for item in clients:
        await item.close()


@pytest.fixture(params=[AiohttpOutbound, LeanOutbound], ids=["aiohttp", "lean"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Returns a function that creates a client of each kind: `make(max_connections, **options)`."""
    async for item in _closing(request.param):
        yield item


@pytest.fixture
def outbound(make: Make) -> Outbound:
    return make()


@pytest.fixture
async def make_lean() -> AsyncIterator[Make]:
    async for item in _closing(LeanOutbound):
        yield item


@pytest.fixture
def lean(make_lean: Make) -> LeanOutbound:
    carrier = make_lean()
    assert isinstance(carrier, LeanOutbound)
    return carrier


@pytest.fixture(autouse=True)
def no_proxy_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the proxy settings of the machine that runs the tests."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
