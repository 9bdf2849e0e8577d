"""One portal for the whole run, with a database of its own in the suite's PostgreSQL. Each test creates its own
organization."""

from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from tests.support.portal import ADMIN_KEY, MASTER_KEY, Org, RunningPortal

from gatehouse.foundation.storage import embedded
from gatehouse.portal.settings import PortalSettings

#: The master key of `apart`.
OLD = f"k1:{b64encode(b'one master key, which has 32 b. ').decode()}"


@pytest.fixture(scope="session")
def portal_database(suite_home: Path) -> str:
    url, name = embedded.start(suite_home), f"portal_{uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="session")
def portal_settings(suite_home: Path, portal_database: str) -> PortalSettings:
    return PortalSettings.from_environment(
        {
            "GATEHOUSE_HOME": str(suite_home),
            "GATEHOUSE_MASTER_KEY": MASTER_KEY,
            "PORTAL_DATABASE_URL": portal_database,
            "PORTAL_ADMIN_API_KEY": ADMIN_KEY,
            "TRUSTED_PROXIES": "127.0.0.0/8",
        }
    )


@pytest.fixture(scope="session")
async def portal(portal_settings: PortalSettings) -> AsyncIterator[RunningPortal]:
    """Yields the portal, which runs in this process with the real database and without a platform."""
    async with RunningPortal.start(portal_settings) as running:
        yield running


@pytest.fixture
async def org(portal: RunningPortal) -> Org:
    return await portal.new_org()


@pytest.fixture
async def other_org(portal: RunningPortal) -> Org:
    """Yields another organization, whose rows must be invisible."""
    return await portal.new_org()


@pytest.fixture
async def apart(suite_home: Path) -> AsyncIterator[RunningPortal]:
    """Yields a portal with keys and authorities of its own, so that a rotation does not affect other tests."""
    url, name = embedded.start(suite_home), f"portal_{uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    settings = PortalSettings.from_environment(
        {
            "GATEHOUSE_HOME": str(suite_home),
            "GATEHOUSE_MASTER_KEY": OLD,
            "PORTAL_DATABASE_URL": url.replace("/postgres?", f"/{name}?"),
            "PORTAL_ADMIN_API_KEY": ADMIN_KEY,
            "TRUSTED_PROXIES": "127.0.0.0/8",
        }
    )
    async with RunningPortal.start(settings) as running:
        yield running
