"""An HTTPS proxy on this machine, which forwards every connection to one server.

async with tunnels(server.url) as (url, proxy):
    url             for HTTPS_PROXY
    proxy.heads     the request of each connection: CONNECT host:port
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator


class Tunnels:
    """A proxy that connects to `to`, whatever address the client requests. If `refusal` is set, it is the answer."""

    def __init__(self, to: str, refusal: bytes = b"") -> None:
        self.to, self.refusal = to, refusal
        self.heads: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        # The stream's callback must not get the exception of a connection that is open at the end.
        with contextlib.suppress(asyncio.CancelledError):
            await self._lead(reader, writer)

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if self.refusal:
            writer.write(self.refusal)
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", int(self.to.rpartition(":")[2]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(self._pipe(reader, far_writer), self._pipe(far_reader, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def tunnels(
    to: str, refusal: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, Tunnels]]:
    proxy = Tunnels(to, refusal)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)
    scheme = "http" if tls is None else "https"
    try:
        yield f"{scheme}://me:se%40cret@127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy
    finally:
        server.close()
        for task in proxy.tasks:
            task.cancel()
        await asyncio.gather(*proxy.tasks, return_exceptions=True)
