"""Runs a measurement with a real PostgreSQL, the tools of `gatehouse worker`, and a receiver in a separate process."""

import asyncio
import multiprocessing
import shutil
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from tests.support.receiver import HERE, certificate

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import embedded
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.installation import setup

T = TypeVar("T")
#: A measurement, called with a connection of the database's owner, the tools, and the port of the receiver.
Measurement = Callable[[psycopg.Connection[Any], Tools, int], Awaitable[T]]

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Answering(asyncio.Protocol):
    """A minimal receiver. It reads the complete request and answers, except on the path /dead."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._received = transport, b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end or head.startswith(b"POST /dead"):
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(rest) >= length:
            self._received = rest[length:]
            self._transport.write(_ANSWER)


def _receive(connection: Connection) -> None:
    async def serve() -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate())
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, ssl=tls)
        connection.send((server.sockets[0].getsockname()[1], str(certificate())))
        await server.serve_forever()

    asyncio.run(serve())


async def time_until(is_done: Callable[[], bool], run: Coroutine[Any, Any, None]) -> tuple[float, float]:
    """Run `run` until `is_done` returns True, and then cancel it. Return the seconds and the CPU seconds."""
    began, cpu = time.monotonic(), time.process_time()
    running = asyncio.create_task(run)
    while not await asyncio.to_thread(is_done):
        await asyncio.sleep(0.02)
    seconds, used = time.monotonic() - began, time.process_time() - cpu
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return seconds, used


def print_rate(name: str, figures: list[tuple[float, float]]) -> float:
    """Print and return the highest rate of several rounds. A round is its events per second, and its CPU microseconds
    per event."""
    rate, cost = max(figures)
    rounds = " ".join(f"{item:.0f}" for item, _ in figures)
    print(f"{name}: {rate:.0f} events/s (rounds: {rounds}), {cost:.0f} us of CPU per event")
    return rate


def run(measure: Measurement[T]) -> T:
    """Return the result of the measurement."""
    home = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    parent_end, child_end = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=_receive, args=(child_end,), daemon=True)
    receiver.start()
    try:
        installed = setup.connect(Settings.from_environment({"GATEHOUSE_HOME": str(home)}))
        setup.prepare(installed)
        port, authority = parent_end.recv()
        with psycopg.connect(installed.owner_url, autocommit=True) as owner:
            return asyncio.run(_run(measure, installed.url, owner, port, authority))
    finally:
        receiver.terminate()
        embedded.stop(home)
        shutil.rmtree(home, ignore_errors=True)


async def _run(measure: Measurement[T], url: str, owner: psycopg.Connection[Any], port: int, authority: str) -> T:
    database, outbound = Database(url, pool_size=2), AiohttpOutbound(1)
    receivers = Receivers(EgressGuard(HERE), tls=ssl.create_default_context(cafile=authority))
    tools = Tools(
        settings=Settings(), database=database, sealer=Sealer({"k": bytes(32)}, "k"), outbound=outbound,
        clock=SYSTEM_CLOCK, receivers=receivers,
    )  # fmt: skip
    try:
        return await measure(owner, tools, port)
    finally:
        await receivers.close()
        await outbound.close()
        await database.close()
