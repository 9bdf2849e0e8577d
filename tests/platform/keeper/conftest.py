"""A journal for the keeper's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.journal import Journal
from tests.support.platform import RunningPlatform, Tenant


@pytest.fixture
async def tenant(platform: RunningPlatform) -> Tenant:
    """An organization with an unlimited hot window, because tests use their own dates."""
    made = await platform.new_tenant()
    platform.show_all(made)
    return made


@pytest.fixture
async def journal(platform: RunningPlatform, tmp_path: Path) -> AsyncIterator[Journal]:
    made = Journal(platform.installed.url, tmp_path / "journal")
    yield made
    await made.killed()
