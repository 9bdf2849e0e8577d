"""Fixtures for tests of connections."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.support.mcp_accounts import AccountServer, account_server, browser_of
from tests.support.members import Member
from tests.support.pages import Visitor
from tests.support.platform import RunningPlatform

from gatehouse.foundation.settings import Settings

Browser = Callable[[Member], Awaitable[Visitor]]


@pytest.fixture(scope="module")
async def platform(settings: Settings) -> AsyncIterator[RunningPlatform]:
    """A worker with a public address, which redirect URIs require."""
    async with RunningPlatform.start(settings.model_copy(update={"public_url": "https://gatehouse.test"})) as running:
        yield running


@pytest.fixture
async def upstream() -> AsyncIterator[AccountServer]:
    async with account_server() as server:
        yield server


@pytest.fixture
async def browser(platform: RunningPlatform) -> AsyncIterator[Browser]:
    """Opens a browser in which a user is signed in."""
    visitors: list[Visitor] = []

    async def open_for(who: Member) -> Visitor:
        visitors.append(await browser_of(platform, who))
        return visitors[-1]

    yield open_for
    for visitor in visitors:
        await visitor.client.aclose()
