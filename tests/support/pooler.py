"""A connection pooler in transaction mode with one connection, like PgBouncer with `pool_mode = transaction`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_VERSION = (3 << 16).to_bytes(4, "big")
#: request codes for TLS and for GSSAPI
_ENCRYPTION = {(80877103).to_bytes(4, "big"), (80877104).to_bytes(4, "big")}


@asynccontextmanager
async def pooler(socket: Path) -> AsyncIterator[str]:
    """Start a pooler for the PostgreSQL at this Unix socket, and yield its URL. All clients are connected as
    the user `postgres`, whatever name they send."""
    reader, writer = await asyncio.open_unix_connection(str(socket))
    body = _VERSION + b"user\0postgres\0database\0postgres\0\0"
    writer.write((len(body) + 4).to_bytes(4, "big") + body)
    greeting = await _until_ready(reader)
    server_lock = asyncio.Lock()

    async def serve(client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter) -> None:
        try:
            while await _start(client_reader) in _ENCRYPTION:
                client_writer.write(b"N")
            client_writer.write(greeting)
            while (message := await _message(client_reader))[:1] != b"X":
                async with server_lock:
                    reply = b""
                    # Relay until the server reports that no transaction is open, and all requests were answered.
                    while not reply.endswith(b"I"):
                        writer.write(message)
                        if message[:1] in b"QS":
                            reply = await _until_ready(reader)
                            client_writer.write(reply)
                        if not reply.endswith(b"I"):
                            message = await _message(client_reader)
        except asyncio.IncompleteReadError:
            pass
        finally:
            client_writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"postgresql://postgres@127.0.0.1:{server.sockets[0].getsockname()[1]}/postgres"
    finally:
        server.close()
        writer.close()


async def _start(reader: asyncio.StreamReader) -> bytes:
    """Return the code of the first message: a version, or a request for encryption."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    return (await reader.readexactly(size - 4))[:4]


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


async def _until_ready(reader: asyncio.StreamReader) -> bytes:
    """Return the server's messages up to `ReadyForQuery`, whose last byte is the state of the transaction."""
    reply = b""
    while True:
        message = await _message(reader)
        reply += message
        if message[:1] == b"Z":
            return reply
