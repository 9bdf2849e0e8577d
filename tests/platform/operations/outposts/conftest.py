import pytest
from tests.support.outposts import Outpost, Portal
from tests.support.platform import RunningPlatform, Tenant


@pytest.fixture(scope="module")
async def portal(platform: RunningPlatform) -> Portal:
    return Portal(platform, await platform.new_m2m(None, "admin:write", tier="unlimited"))


@pytest.fixture
async def outpost(portal: Portal, tenant: Tenant) -> Outpost:
    """An outpost of `tenant`."""
    return await portal.enrol(tenant.id)
