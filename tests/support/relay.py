"""A connection to PostgreSQL that a test can interrupt: TCP on 127.0.0.1, relayed by a thread to the server's Unix
socket.

with relay(socket) as way:
    way.url                 a DATABASE_URL that goes through it
    way.refuse()            breaks connections and refuses new ones, like a host that is down
    way.swallow()           forwards nothing, without closing connections, like an unplugged cable
    way.swallow_after(n)    the same after n more bytes to the server, also within a message
    way.mend()              forwards again; the held bytes arrive late, as with TCP
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Relay:
    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._port = 0
        #: bytes sent to the server
        self.carried = 0
        self._last: int | None = None
        self._wires: set[asyncio.StreamWriter] = set()
        self._carrying = asyncio.Event()
        self._carrying.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.mend()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    @property
    def carrying(self) -> bool:
        return self._carrying.is_set()

    def refuse(self) -> None:
        self._do(self._refuse())

    def swallow(self) -> None:
        self._loop.call_soon_threadsafe(self._carrying.clear)

    def swallow_after(self, count: int) -> None:
        self._last = self.carried + count

    def mend(self) -> None:
        self._last = None
        self._do(self._listen())
        self._loop.call_soon_threadsafe(self._carrying.set)

    def close(self) -> None:
        self.refuse()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _do(self, what: "asyncio._CoroutineLike[None]") -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(5)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for wire in self._wires:
            wire.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(str(self._socket))
        self._wires |= {writer, to_server}
        try:
            await asyncio.gather(self._carry(reader, to_server, count=True), self._carry(from_server, writer))
        finally:
            self._wires -= {writer, to_server}

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, count: bool = False) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                data = await reader.read(65536)
                await self._carrying.wait()
                if not data:
                    break
                while count and self._last is not None and self.carried + len(data) > self._last:
                    first, data = data[: self._last - self.carried], data[self._last - self.carried :]
                    self.carried += len(first)
                    writer.write(first)
                    self._carrying.clear()
                    await self._carrying.wait()
                self.carried += len(data) if count else 0
                writer.write(data)
                await writer.drain()
        writer.close()


@contextmanager
def relay(socket: Path) -> Iterator[Relay]:
    way = Relay(socket)
    try:
        yield way
    finally:
        way.close()
