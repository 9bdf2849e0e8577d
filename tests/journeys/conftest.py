"""Fixtures of the journeys: four workers as real processes, with one PostgreSQL and one Redis."""

import json
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from tests.support.arrivals import Arrivals, arrivals
from tests.support.redis import RedisServer, redis_server
from tests.support.server import GatehouseServer

#: The only path on which the fleet limits users, to 60 requests a minute. Load tests use its alias.
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
    """A platform with four workers and few connections to providers, so that requests wait for them."""
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
    """A client of the fleet's first admin. It keeps no connection, because a kept one could belong to a stopped
    worker."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {fleet.key}"}
    async with httpx2.AsyncClient(base_url=fleet.url, headers=headers, limits=limits, timeout=60) as client:
        yield client
