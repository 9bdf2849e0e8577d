"""Fixtures for tests with browsers."""

from collections.abc import AsyncIterator

import pytest
from tests.support.pages import Visitor
from tests.support.platform import RunningPlatform

from gatehouse.foundation.settings import Settings


@pytest.fixture(scope="module")
async def public(settings: Settings, platform: RunningPlatform) -> AsyncIterator[RunningPlatform]:
    """Another worker with the same database and a public address, which sign-in for applications requires."""
    async with RunningPlatform.start(settings.model_copy(update={"public_url": "https://gatehouse.test"})) as running:
        yield running


@pytest.fixture
async def visitor(public: RunningPlatform) -> AsyncIterator[Visitor]:
    new_visitor = Visitor(public)
    yield new_visitor
    await new_visitor.client.aclose()
