"""Two workers accept connections on the same socket, here in one process."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from gatehouse.platform.worker.connection_sharing import Acceptor, ConnectionBoard, ConnectionSet


@dataclass(eq=False)
class Connection:
    wire: socket.socket
    calls: list[str] = field(default_factory=list)

    def shutdown(self) -> None:
        self.calls.append("shutdown")


class Worker:
    def __init__(self, board: ConnectionBoard, listener: socket.socket) -> None:
        self.connections = ConnectionSet(board)
        self.may_serve = asyncio.Event()
        self.may_serve.set()
        self.acceptor = Acceptor(listener, self.connections, self._serve)

    async def _serve(self, wire: socket.socket) -> None:
        await self.may_serve.wait()
        self.connections.add(Connection(wire))


@contextlib.asynccontextmanager
async def two_workers() -> AsyncIterator[tuple[list[Worker], tuple[str, int]]]:
    with socket.create_server(("127.0.0.1", 0)) as listener, listener.dup() as again:
        workers = [Worker(board, item) for board, item in zip(ConnectionBoard.of(2), (listener, again), strict=True)]
        try:
            yield workers, listener.getsockname()
        finally:
            for worker in workers:
                worker.acceptor.close()
                await worker.acceptor.wait_closed()
                for connection in worker.connections:
                    connection.wire.close()


async def connect(stack: contextlib.ExitStack, address: tuple[str, int]) -> None:
    wire = stack.enter_context(socket.socket())
    wire.setblocking(False)
    await asyncio.get_running_loop().sock_connect(wire, address)


async def connection_counts(workers: list[Worker], number: int) -> list[int]:
    async with asyncio.timeout(60):
        while sum(len(worker.connections) for worker in workers) < number:
            await asyncio.sleep(0.005)
    return [len(worker.connections) for worker in workers]


async def test_single_connections_go_to_the_worker_with_fewer_connections() -> None:
    async with two_workers() as (workers, address):
        with contextlib.ExitStack() as stack:
            # Connections that one worker has already.
            more = [Connection(stack.enter_context(socket.socket())) for _ in range(6)]
            for connection in more:
                workers[0].connections.add(connection)
            for number in range(7, 13):
                await connect(stack, address)
                await connection_counts(workers, number)
                # Longer than the maximum time for which a connection is left to the other worker.
                await asyncio.sleep(0.06)
            assert [len(worker.connections) for worker in workers] == [6, 6]


async def test_a_burst_is_divided_equally() -> None:
    async with two_workers() as (workers, address):
        with contextlib.ExitStack() as stack:
            await asyncio.gather(*(connect(stack, address) for _ in range(40)))
            assert await connection_counts(workers, 40) == [20, 20]


async def test_a_worker_that_does_not_accept_is_waited_for_only_once() -> None:
    async with two_workers() as (workers, address):
        with contextlib.ExitStack() as stack:
            workers[0].connections.add(Connection(stack.enter_context(socket.socket())))
            # A stopped worker is still in the shared table, but accepts nothing.
            asyncio.get_running_loop().remove_reader(workers[1].acceptor._listener)
            began = asyncio.get_running_loop().time()
            for _ in range(10):
                await connect(stack, address)
            assert await connection_counts(workers, 11) == [11, 0]
            assert asyncio.get_running_loop().time() - began < 0.4


@pytest.mark.parametrize("late", [False, True])
async def test_a_connection_that_arrives_after_the_server_ended_is_shut_down(late: bool) -> None:
    async with two_workers() as (workers, address):
        with contextlib.ExitStack() as stack:
            if late:
                workers[0].may_serve.clear()
                workers[1].may_serve.clear()
            await connect(stack, address)
            async with asyncio.timeout(60):
                while not any(worker.connections or worker.connections.handshaking for worker in workers):
                    await asyncio.sleep(0.005)
            for worker in workers:
                worker.acceptor.close()
                worker.may_serve.set()
            await connection_counts(workers, 1)
            await asyncio.sleep(0.01)
            (connection,) = workers[0].connections | workers[1].connections
            assert connection.calls == (["shutdown"] if late else [])
