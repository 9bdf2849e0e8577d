"""A real platform in processes of its own, and a portal on a real socket, which is an OAuth client of the platform."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import httpx2
import pytest
from tests.support.portal import ADMIN_KEY, MASTER_KEY, RunningPortal
from tests.support.ports import free_port
from tests.support.server import GatehouseServer
from tests.support.surfer import Surfer
from tests.support.town import Provisioned, Town

from gatehouse.portal.settings import PortalSettings


@pytest.fixture(scope="package")
def server() -> Iterator[GatehouseServer]:
    url = f"http://127.0.0.1:{free_port()}"
    running = GatehouseServer(env={"PUBLIC_URL": url})
    running.url = url
    with running:
        yield running


@pytest.fixture(scope="package")
def settings(server: GatehouseServer, tmp_path_factory: pytest.TempPathFactory) -> PortalSettings:
    key, portal_url = server.key, f"http://127.0.0.1:{free_port()}"
    server.settled()
    created = httpx2.post(
        f"{server.url}/api/admin/oauth-clients/",
        json={
            "name": "the portal",
            "tenant_id": None,
            "scopes": ["admin:write"],
            "redirect_uris": [f"{portal_url}/v1/auth/sso/callback"],
        },
        headers={"X-API-Key": key},
    )
    assert created.status_code == 201, created.text
    return PortalSettings.from_environment(
        {
            "GATEHOUSE_HOME": str(tmp_path_factory.mktemp("portal")),
            "GATEHOUSE_MASTER_KEY": MASTER_KEY,
            "PORTAL_DATABASE_URL": server.database_url,
            "PORTAL_ADMIN_API_KEY": ADMIN_KEY,
            "PORTAL_PUBLIC_URL": portal_url,
            "PLATFORM_URL": server.url,
            "PLATFORM_CLIENT_ID": created.json()["client_id"],
            "PLATFORM_CLIENT_SECRET": created.json()["client_secret"],
            "TRUSTED_PROXIES": "127.0.0.0/8",
        }
    )


@pytest.fixture(scope="package")
async def portal(settings: PortalSettings) -> AsyncIterator[RunningPortal]:
    assert settings.portal_public_url is not None
    port = int(settings.portal_public_url.rpartition(":")[2])
    async with RunningPortal.start(settings) as running, running.listening(port):
        yield running


@pytest.fixture(scope="package")
def town(portal: RunningPortal, server: GatehouseServer) -> Town:
    return Town(portal, server)


@pytest.fixture(scope="package")
async def shared_org(town: Town) -> Provisioned:
    """Yields an organization for tests that do not change it, because its creation takes longer than most tests."""
    return await town.organization()


@pytest.fixture(scope="package")
async def second_org(town: Town) -> Provisioned:
    """Yields another organization for tests that do not change it."""
    return await town.organization()


@pytest.fixture
def org(town: Town, shared_org: Provisioned) -> Provisioned:
    """Returns the organization with a new administrator, because the platform limits the sign-ins of one account."""
    person = town.person(shared_org)
    town.join(shared_org, person, "admin")
    return replace(shared_org, owner=person)


@pytest.fixture
async def new_org(town: Town) -> Provisioned:
    """Returns a new organization, whose only member is its owner, who has not signed in yet."""
    return await town.organization()


@pytest.fixture
async def surfer(settings: PortalSettings, server: GatehouseServer) -> AsyncIterator[Surfer]:
    browser = Surfer(settings.portal_public_url or "", server.url)
    yield browser
    await browser.client.aclose()


@pytest.fixture
async def stranger(settings: PortalSettings, server: GatehouseServer) -> AsyncIterator[Surfer]:
    """Yields another browser."""
    browser = Surfer(settings.portal_public_url or "", server.url)
    yield browser
    await browser.client.aclose()
