"""Clients of a worker process, with raw sockets; a provider whose answer depends on the model; and the resources of the
worker, from the system's lists."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from uuid import uuid4

import httpx2
import psutil
from tests.support.engine import completion
from tests.support.server import GatehouseServer
from tests.support.upstream import Connection

PATH: Final = "/v1/chat/completions"
MEGABYTE: Final = 1024**2

_LINGER_NONE: Final = struct.pack("ii", 1, 0)


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def stream() -> bytes:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "One"}, {"content": " two"}, {}]
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events[-1]["choices"][0]["finish_reason"] = "stop"
    events.append({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
    texts = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    chunks = [b"%x\r\n%b\r\n" % (len(text), text) for text in (*texts, b"data: [DONE]\n\n")]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(chunks) + b"0\r\n\r\n"


WHOLE: Final = {False: answer(completion("Hello there")), True: stream()}
LARGE: Final = answer(completion("x" * 4 * MEGABYTE))
_CHOICE: Final = {"index": 0, "delta": {"content": "x" * 1000}, "finish_reason": None}
FLOOD: Final = (b"data: " + json.dumps({"choices": [_CHOICE]}).encode() + b"\n\n") * 60


@dataclass
class Provider:
    """Answers depend on the model: `whole`, `large`, `flood` (endless events), `cut` (the number of bytes in the body's
    `user`, then a reset)."""

    url: str = ""
    flooding: int = 0
    flooded: int = 0

    async def __call__(self, connection: Connection) -> None:
        # A health check has no body.
        request = json.loads(connection.body or b'{"model": "whole"}')
        whole = WHOLE[bool(request.get("stream"))]
        match request["model"]:
            case "large":
                await connection.send(LARGE)
            case "flood":
                await self._flood(connection)
            case "cut" if int(request["user"]) < len(whole):
                await connection.send(whole[: int(request["user"])])
                # The kernel must have the bytes before the reset.
                reset(connection.writer)
                raise ConnectionError
            case _:
                await connection.send(whole)

    async def _flood(self, connection: Connection) -> None:
        await connection.begin_stream()
        self.flooding += 1
        try:
            while True:
                await connection.chunk(FLOOD)
                self.flooded += len(FLOOD)
        finally:
            self.flooding -= 1


def reset(writer: asyncio.StreamWriter) -> None:
    """Reset the connection, like a host that has lost its state."""
    wire = writer.get_extra_info("socket")
    if wire.fileno() >= 0:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
    writer.transport.abort()


@dataclass
class WorkerResources:
    """The resources of a worker."""

    descriptors: int
    memory: int
    #: connections of clients and to the provider
    clients: int
    calls: int


@dataclass
class ServerUnderTest:
    server: GatehouseServer
    provider: Provider
    key: str
    admin_key: str
    #: tasks of the worker's event loop without requests
    idle_tasks: float = 0

    @cached_property
    def worker(self) -> psutil.Process:
        (worker,) = self.server.workers
        return worker

    @cached_property
    def port(self) -> int:
        return int(self.server.url.rpartition(":")[2])

    def resources(self) -> WorkerResources:
        listening, provider = self.port, int(self.provider.url.rpartition(":")[2])
        connections = [connection for connection in self.worker.net_connections("tcp") if connection.raddr]
        return WorkerResources(
            self.worker.num_fds(),
            self.worker.memory_info().rss,
            sum(connection.laddr.port == listening for connection in connections),
            sum(connection.raddr.port == provider for connection in connections),
        )

    def request(self, model: str, request_id: str, *, streamed: bool = False, user: str = "u", more: str = "") -> bytes:
        request = {"model": f"odd/{model}", "messages": [{"role": "user", "content": "hi"}], "stream": streamed}
        body = json.dumps({**request, "user": user}).encode()
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.key}\r\nX-Request-Id: {request_id}\r\n"
            f"{more}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    @asynccontextmanager
    async def connected(self, *, buffer: int | None = None) -> AsyncIterator["Wire"]:
        """`buffer` is roughly the number of unread bytes that the system accepts for the client."""
        wire = socket.socket()
        if buffer is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        wire.setblocking(False)
        await asyncio.get_running_loop().sock_connect(wire, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=wire, limit=buffer or 2**16)
        try:
            yield Wire(reader, writer)
        finally:
            writer.close()

    async def check_other_clients(self, *, within: float = 2.0) -> None:
        """Check that another client gets an answer meanwhile."""
        async with self.connected() as wire, asyncio.timeout(within):
            wire.send(self.request("whole", f"other-{uuid4().hex}"))
            assert (await wire.reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")

    async def ready(self) -> None:
        await self.check_other_clients(within=10)
        async with asyncio.timeout(60):
            # The worker has no figure until it has written its metrics.
            while (tasks := await self.figure(self._tasks)) == 0:
                await asyncio.sleep(0.05)
        self.idle_tasks = tasks

    async def nothing_left(self, before: WorkerResources) -> None:
        """Wait until the resources of clients and calls are released. The pool may keep connections to the provider."""
        async with asyncio.timeout(60):
            while (now := self.resources()).clients or await self.figure("service_active_model_calls"):
                await asyncio.sleep(0.05)
            # A periodic task of the worker may run during one of the two measurements.
            while await self.figure(self._tasks) > self.idle_tasks + 2:
                await asyncio.sleep(0.05)
        assert now.descriptors - now.calls <= before.descriptors - before.calls + 4

    @property
    def _tasks(self) -> str:
        return f'service_event_loop_tasks{{pid="{self.worker.pid}"}}'

    async def figure(self, name: str) -> float:
        headers = {"Authorization": f"Bearer {self.admin_key}", "Connection": "close"}
        async with httpx2.AsyncClient(headers=headers) as client:
            figures = (await client.get(f"{self.server.url}/metrics")).text
        (line,) = (line for line in figures.splitlines() if line.startswith(f"{name} "))
        return float(line.split()[1])

    async def records(self, prefix: str, number: int) -> dict[str, str]:
        """Wait for this many records and return the status of each request. Checks that each has one record."""
        async with asyncio.timeout(60):
            while len(self._rows(prefix)) < number:
                await asyncio.sleep(0.1)
        await asyncio.sleep(0.5)
        rows = self._rows(prefix)
        assert len(rows) == len(dict(rows)) == number
        return dict(rows)

    def _rows(self, prefix: str) -> list[tuple[str, str]]:
        query = "SELECT request_id, status FROM usage_records WHERE request_id LIKE %s"
        return [(request_id, status) for request_id, status in self.server.sql(query, [f"{prefix}%"])]


@dataclass
class Wire:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def reset(self) -> None:
        reset(self.writer)

    async def until_closed(self, within: float = 10.0) -> bytes:
        """Read until the end or a reset."""
        received = b""
        async with asyncio.timeout(within):
            try:
                while some := await self.reader.read(65536):
                    received += some
            except ConnectionError:
                pass
        return received


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read a body of known length, or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    status = int(head.split()[1])
    if "transfer-encoding: chunked" in head:
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        return status, body
    return status, await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
