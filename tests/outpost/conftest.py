"""One platform and one outpost for all tests of this folder, because each takes seconds to start."""

from collections.abc import Iterator

import httpx2
import pytest
from tests.support.outpost_server import OutpostServer, Trust
from tests.support.server import GatehouseServer


@pytest.fixture(scope="package")
def trust() -> Iterator[Trust]:
    with GatehouseServer() as server:
        yield Trust(server)


@pytest.fixture(scope="module")
def outpost(trust: Trust) -> Iterator[OutpostServer]:
    with OutpostServer(trust) as running:
        yield running


@pytest.fixture
def operator(outpost: OutpostServer) -> Iterator[httpx2.Client]:
    """Yields a client with the outpost's admin token."""
    with outpost.admin() as client:
        yield client
