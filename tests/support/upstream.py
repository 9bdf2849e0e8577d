"""A provider on 127.0.0.1 that can misbehave: sends raw bytes over a real socket, and records the requests."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Behave = Callable[["Connection"], Awaitable[None]]


class Connection:
    """A request, and the connection to answer on."""

    def __init__(self, head: str, body: bytes, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
        self.head = head
        self.body = body
        self.writer = writer
        self.reader = reader

    @property
    def headers(self) -> dict[str, str]:
        lines = (line.partition(":") for line in self.head.split("\r\n")[1:] if line)
        return {name.lower(): value.strip() for name, _, value in lines}

    async def send(self, data: bytes) -> None:
        if self.writer.is_closing():
            # The client has closed the connection. uvloop's transport raises a RuntimeError here.
            raise ConnectionResetError("the connection is closed")
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes, *, status: int = 200, kind: str = "application/json", more: str = "") -> None:
        await self.send(
            f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode() + body
        )

    async def begin_stream(self) -> None:
        await self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end_stream(self) -> None:
        await self.send(b"0\r\n\r\n")


class Upstream:
    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Connection] = []
        self.connections = 0
        self.closed_by_client = asyncio.Event()


@asynccontextmanager
async def upstream(behave: Behave, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Upstream]:
    """`behave` answers each request; when it returns, the connection waits for the next one."""

    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                connection = Connection(head, b"", writer, reader)
                connection.body = await reader.readexactly(int(connection.headers.get("content-length", "0")))
                state.requests.append(connection)
                await behave(connection)
        except (asyncio.IncompleteReadError, ConnectionError):
            state.closed_by_client.set()
        except asyncio.CancelledError:
            # The test has ended while a behaviour still waits. The stream's callback must not get the exception.
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    scheme = "http" if tls is None else "https"
    state = Upstream(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield state
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
