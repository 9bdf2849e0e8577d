"""A connection to a gateway with raw bytes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

BODY = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello there"}]}


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self.reader = reader
        self.writer = writer
        self._key = key

    async def send(
        self, method: str = "POST", path: str = "/v1/chat/completions", *, more: str = "", version: str = "1.1",
        stream: bool = False, body: bytes | None = None,
    ) -> None:  # fmt: skip
        content = json.dumps({**BODY, "stream": stream}).encode() if body is None else body
        head = f"{method} {path} HTTP/{version}\r\nHost: x\r\nAuthorization: Bearer {self._key}\r\n{more}"
        self.writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        await self.writer.drain()

    async def head(self) -> str:
        return (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 5)).decode()

    async def answer(self) -> tuple[str, bytes]:
        """Return the head and a body of known length."""
        head = await self.head()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        return head, await asyncio.wait_for(self.reader.readexactly(length), 5)

    async def rest(self) -> bytes:
        """Return everything until the server closes the connection."""
        return await asyncio.wait_for(self.reader.read(), 5)


@contextlib.asynccontextmanager
async def connected(url: str, key: str = "") -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        yield Wire(reader, writer, key)
    finally:
        writer.close()
