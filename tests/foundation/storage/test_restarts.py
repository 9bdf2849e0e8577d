"""Pooled connections after a restart of the server."""

import asyncio
import tempfile
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from gatehouse.foundation.storage import embedded, roles
from gatehouse.foundation.storage.database import Database


async def test_after_a_restart_no_transaction_gets_a_dead_connection() -> None:
    with tempfile.TemporaryDirectory(prefix="ge", dir="/tmp", ignore_cleanup_errors=True) as directory:
        home = Path(directory)
        url = embedded.start(home)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(roles.CREATE_ROLES_SQL.read_text())
        database = Database(url)

        async def backend() -> int:
            async with database.service() as session:
                return int((await session.execute(text("SELECT pg_backend_pid()"))).scalar_one())

        try:
            # Several connections are in the pool, and the restart closes all of them.
            before = await asyncio.gather(*(backend() for _ in range(3)))
            assert await backend() in before
            embedded.stop(home)
            with pytest.raises(OperationalError):
                await backend()
            embedded.start(home)
            after = await asyncio.gather(*(backend() for _ in range(3)))
            assert await backend() in after
        finally:
            await database.close()
            embedded.stop(home)
