"""What journeys share: four workers as real processes, over one PostgreSQL and one Redis."""

import json
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from tests.support.arrivals import Arrivals, arrivals
from tests.support.redis import RedisServer, redis_server
from tests.support.server import GatehouseServer

#: the one path on which the fleet limits users, to 60 a minute; load goes over its alias
LIMITED = "/v1/chat/completions"


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    with redis_server() as running:
        yield running


@pytest.fixture(scope="session")
def provider() -> Iterator[Arrivals]:
    with arrivals() as running:
        yield running


@pytest.fixture(scope="session")
def fleet(redis: RedisServer, provider: Arrivals) -> Iterator[GatehouseServer]:
    """Connections to providers are few, so that requests wait for them."""
    env = {
        "REDIS_URL": redis.url,
        "PROVIDER_MAX_CONNECTIONS": "4",
        "PROVIDER_MAX_CONNECTIONS_EACH": "4",
        "RATE_LIMIT_TIERS": json.dumps({f"POST {LIMITED}": 60, "/api/conversations/shared/": 1000, "/login": 1000}),
    }
    with GatehouseServer(workers=4, env=env) as running:
        running.add_provider("up", provider.url, ["steady", "other-steady"], max_retries=2)
        running.add_provider("shaky", provider.url, ["flaky"], max_retries=5)
        running.add_provider("down", provider.url, ["failing"], max_retries=1)
        yield running


@pytest.fixture
async def admin(fleet: GatehouseServer) -> AsyncIterator[httpx2.AsyncClient]:
    """Calls the fleet as its first admin. No connection is kept: a stopped worker could have it."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {fleet.key}"}
    async with httpx2.AsyncClient(base_url=fleet.url, headers=headers, limits=limits, timeout=30) as client:
        yield client
