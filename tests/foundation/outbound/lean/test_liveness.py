"""Connections that the server has closed, and the errors of calls on them."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.outbound import BrokenOff, ConnectFailed, Outbound, OutboundRequest
from gatehouse.foundation.outbound.lean import connection as connection_module

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


def request(url: str, method: str = "POST") -> OutboundRequest:
    return OutboundRequest(method=method, url=url, headers={}, body=b"{}" if method == "POST" else b"")


async def ask(outbound: Outbound, url: str, method: str = "POST") -> bytes:
    reply = await outbound.send(request(url, method))
    try:
        return await reply.read(100)
    finally:
        await reply.close()


class Blocking:
    """A provider in a thread, which can act while the event loop is blocked."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.requests = 0
        self.leave = threading.Event()
        self.left = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                if connection.recv(65_536):
                    self.requests += 1
                    connection.sendall(ANSWER)
                self.leave.wait(5)
            self.left.set()


@contextmanager
def blocking() -> Iterator[Blocking]:
    provider = Blocking()
    yield provider
    provider.leave.set()
    provider.listener.close()


async def test_a_connection_that_was_closed_while_the_loop_stood_still_is_not_used(lean: Outbound) -> None:
    with blocking() as provider:
        for count in range(1, 4):
            assert await ask(lean, provider.url) == b"hi"
            assert provider.requests == count
            provider.leave.set()
            # The loop does not see that the connection is closed, because this call blocks the loop.
            assert provider.left.wait(2)
            time.sleep(0.01)
            provider.leave.clear()
            provider.left.clear()


@pytest.mark.parametrize(
    ("method", "expected_error"), [("GET", ConnectFailed), ("HEAD", ConnectFailed), ("POST", BrokenOff)]
)
@pytest.mark.parametrize("by", ["end", "reset"])
async def test_a_call_on_a_reused_connection_that_is_closed_fails_and_is_not_repeated(
    lean: Outbound, method: str, expected_error: type[Exception], by: str
) -> None:
    async def behave(connection: Connection) -> None:
        if len(server.requests) == 1:
            await connection.answer(b"hi")
        elif by == "reset":
            connection.writer.transport.abort()
        else:
            raise ConnectionError

    async with upstream(behave) as server:
        assert await ask(lean, server.url) == b"hi"
        with pytest.raises(expected_error) as failure:
            await ask(lean, server.url, method)
        assert type(failure.value) is expected_error
        await asyncio.sleep(0.05)
        assert (len(server.requests), server.connections) == (2, 1)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_new_connection_closed_without_a_response_is_a_broken_connection(lean: Outbound, method: str) -> None:
    async def behave(connection: Connection) -> None:
        raise ConnectionError

    async with upstream(behave) as server:
        with pytest.raises(BrokenOff):
            await ask(lean, server.url, method)
        assert len(server.requests) == 1


async def test_a_reused_connection_closed_during_the_response_is_a_broken_connection(lean: Outbound) -> None:
    async def behave(connection: Connection) -> None:
        if len(server.requests) == 1:
            await connection.answer(b"hi")
        else:
            await connection.send(b"H")
            raise ConnectionError

    async with upstream(behave) as server:
        assert await ask(lean, server.url) == b"hi"
        with pytest.raises(BrokenOff):
            await ask(lean, server.url, "GET")


async def test_a_response_before_the_end_of_the_request_is_read_and_the_connection_is_closed(lean: Outbound) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too large\r\ncontent-length: 2\r\n\r\nno")
        await asyncio.sleep(0.3)
        writer.close()

    connections = 0
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for _ in range(2):
        reply = await lean.send(OutboundRequest(method="POST", url=url, headers={}, body=b"x" * 20_000_000))
        assert (reply.status, await reply.read(10)) == (413, b"no")
        await reply.close()
    assert connections == 2
    server.close()


async def test_closing_the_client_ends_the_calls_in_progress(lean: Outbound) -> None:
    async def behave(connection: Connection) -> None:
        await connection.reader.read()
        raise ConnectionError

    async with upstream(behave) as server:
        call = asyncio.create_task(ask(lean, server.url))
        while not server.requests:
            await asyncio.sleep(0.01)
        await lean.close()
        with pytest.raises(BrokenOff):
            await asyncio.wait_for(call, 1)
        await asyncio.wait_for(server.closed_by_client.wait(), 1)


@pytest.mark.parametrize(("keep_alive", "connections"), [("timeout=1", 2), ("max=5, timeout=60", 1), ("nonsense", 1)])
async def test_a_connection_is_idle_no_longer_than_the_server_keeps_it(
    lean: Outbound, keep_alive: str, connections: int
) -> None:
    async def behave(connection: Connection) -> None:
        await connection.answer(b"hi", more=f"Keep-Alive: {keep_alive}\r\n")

    async with upstream(behave) as server:
        for _ in range(2):
            assert await ask(lean, server.url) == b"hi"
            await asyncio.sleep(0.05)
        assert server.connections == connections


@pytest.mark.parametrize("busy", [True, False], ids=["in use", "at rest"])
async def test_a_connection_beyond_its_maximum_age_serves_no_further_call(
    lean: Outbound, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    monkeypatch.setattr(connection_module, "MAX_AGE_SECONDS", 0.3)

    async def behave(connection: Connection) -> None:
        if busy and len(server.requests) == 2:
            await asyncio.sleep(0.4)
        await connection.answer(b"hi")

    async with upstream(behave) as server:
        for _ in range(2):
            assert await ask(lean, server.url) == b"hi"
        assert server.connections == 1
        if not busy:
            await asyncio.sleep(0.4)
        assert await ask(lean, server.url) == b"hi"
        assert (len(server.requests), server.connections) == (3, 2)
