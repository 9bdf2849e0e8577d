"""Connections are distributed evenly over the workers, and a worker that does not accept connections delays no
client."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest
from tests.support.server import GatehouseServer
from tests.support.wire import Wire

REQUEST = b"GET /api/health/live HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.asynccontextmanager
async def opened(fleet: GatehouseServer, number: int) -> AsyncIterator[list[Wire]]:
    """Open this many concurrent connections and wait for an answer on each."""
    address = urlsplit(fleet.url)
    wires: list[Wire] = []

    async def one() -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        wires.append(Wire(reader, writer, ""))
        writer.write(REQUEST)
        # 429 is an answer too, because all connections come from one address.
        assert (await wires[-1].answer())[0].startswith(("HTTP/1.1 200", "HTTP/1.1 429"))

    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(one() for _ in range(number)))
        yield wires
    finally:
        for wire in wires:
            wire.writer.close()
        await asyncio.sleep(0.1)


def connection_count(worker: psutil.Process, fleet: GatehouseServer) -> int:
    port = urlsplit(fleet.url).port
    return sum(
        connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == port
        for connection in worker.net_connections(kind="tcp")
    )


@pytest.mark.parametrize("number", [64, 400])
async def test_a_burst_of_connections_is_split_evenly(fleet: GatehouseServer, number: int) -> None:
    # The first work of a process takes long, and a worker that gets no processor time for 50 ms is left out for a
    # while. So only one of a few bursts must be even.
    distributions = []
    for _ in range(5):
        async with opened(fleet, number):
            distributions.append([connection_count(worker, fleet) for worker in fleet.workers])
        fair = sum(distributions[-1]) / len(distributions[-1])
        if all(0.9 * fair <= item <= 1.1 * fair for item in distributions[-1]):
            return
    raise AssertionError(distributions)


async def test_connections_that_a_suspended_worker_does_not_accept_go_to_another(fleet: GatehouseServer) -> None:
    fleet.workers[0].suspend()
    try:
        async with opened(fleet, 40):
            assert connection_count(fleet.workers[0], fleet) < 10
    finally:
        fleet.workers[0].resume()


async def test_the_replacement_of_a_dead_worker_gets_its_share_of_connections(fleet: GatehouseServer) -> None:
    before = {worker.pid for worker in fleet.workers}
    fleet.workers[0].kill()
    deadline = time.monotonic() + 60
    while True:
        new = [worker for worker in fleet.workers if worker.pid not in before]
        async with opened(fleet, 32):
            if new and connection_count(new[0], fleet) >= 6:
                return
        assert time.monotonic() < deadline


@pytest.fixture(scope="module")
def home() -> Iterator[GatehouseServer]:
    with GatehouseServer(workers=2) as server:
        yield server


@pytest.fixture
def server(home: GatehouseServer) -> GatehouseServer:
    """A running server with two workers. A test can end it in any way, because the next test starts it again in the
    same home."""
    if not home.running:
        home.start()
    return home


def test_an_orderly_stop_of_several_workers_leaves_no_processes_or_files(server: GatehouseServer) -> None:
    with httpx2.Client(base_url=server.url) as kept:
        assert kept.get("/api/health/live").status_code == 200
        began = time.monotonic()
        assert server.stop() == 0
    assert time.monotonic() - began < 20
    assert "Traceback" not in server.log()
    server.start_database()
    assert server.sql("SELECT kind, pid FROM nodes") == []
    server.stop_database()


def test_a_killed_supervisor_leaves_the_port_free(server: GatehouseServer) -> None:
    port = urlsplit(server.url).port
    assert port is not None
    family = psutil.Process(server.pid).children(recursive=True)
    psutil.Process(server.pid).kill()
    deadline = time.monotonic() + 5
    while True:
        try:
            socket.create_server(("127.0.0.1", port)).close()
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    # Prepare the next test, which starts the server again.
    psutil.wait_procs(family, timeout=60)


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_processes_of_a_killed_supervisor_end_even_if_their_database_stops(
    server: GatehouseServer, pause: float
) -> None:
    family = psutil.Process(server.pid).children(recursive=True)
    psutil.Process(server.pid).kill()
    time.sleep(pause)
    server.stop_database()
    _, alive = psutil.wait_procs(family, timeout=60)
    remaining_processes = [process.name() for process in alive]
    for process in alive:
        process.kill()
    # A keeper that kept running would have the journal locked, so no other keeper would store its records.
    assert remaining_processes == []
