"""Authentication over a connection that is lost."""

import asyncio
import secrets
from pathlib import Path

import pytest
import uvloop

from gatehouse.engine.mcp.stdio.authentication import KEY, NotAuthenticated, prove_owner, prove_worker


def test_a_lost_connection_is_not_authenticated_in_the_loop_of_workers(tmp_path: Path) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def lose() -> None:
        path = tmp_path / "socket"
        listener = await asyncio.start_unix_server(accept, path)
        for prove in (prove_worker, prove_owner):
            _, writer = await asyncio.open_unix_connection(path)
            writer.transport.abort()
            await asyncio.sleep(0.05)
            # The last message of the peer arrived before the connection was lost.
            reader = asyncio.StreamReader()
            reader.feed_data(secrets.token_bytes(64))
            with pytest.raises(NotAuthenticated):
                await prove(KEY, reader, writer)
        listener.close()

    uvloop.run(lose())
