"""Which workers there are, what revision each has confirmed, and waiting until all have (kill switch, `propagation`).

A worker that is stopped or cut off stays in the list: it counts as pending until it is back, or until nobody has
seen it for `FORGOTTEN` seconds. A worker that ends properly takes itself out.
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database

#: seconds after which a silent worker is taken for dead
FORGOTTEN = 120.0
#: seconds that a change waits for the workers at most
PATIENCE = 2.0

_JOIN = text(
    "INSERT INTO nodes (id, name, kind, pid, host, revision) VALUES (:id, :name, :kind, :pid, :host, :revision)"
    " ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, seen_at = now()"
)
# Half the time: a worker that is about to be forgotten counts as forgotten, whoever looks first.
_CONFIRM = text(
    "UPDATE nodes SET revision = :revision, seen_at = now(), status = CAST(:status AS jsonb)"
    " WHERE id = :id AND seen_at > now() - make_interval(secs => :forgotten / 2)"
)
_LEAVE = text("DELETE FROM nodes WHERE id = :id")
_ALL = text(
    "SELECT name, revision, seen_at FROM nodes"
    " WHERE kind = 'gateway' AND seen_at > now() - make_interval(secs => :forgotten) ORDER BY name"
)
_FORGET = text("DELETE FROM nodes WHERE host = :host AND pid = ANY(:pids)")
_HERE = text("SELECT pid FROM nodes WHERE host = :host")


class Propagation(msgspec.Struct, kw_only=True):
    """How far a change has come: how many workers apply it, and the names of those that may not yet."""

    confirmed: int
    total: int
    pending: list[str]
    elapsed_ms: float

    def as_dict(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


class Node:
    """This worker's entry in the list."""

    def __init__(self, database: Database, *, kind: str = "gateway") -> None:
        self.id: UUID = new_id()
        self.host = _machine()
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self._database = database
        self._kind = kind
        self._joined = False
        #: what this worker says of itself with each beat: `active`, the model calls in progress
        self.report: Callable[[], dict[str, Any]] = dict

    async def join(self, revision: int) -> None:
        async with self._database.feed() as session:
            await self._forget_dead(session)
            values = {
                "id": self.id, "name": self.name, "kind": self._kind,
                "pid": os.getpid(), "host": self.host, "revision": revision,
            }  # fmt: skip
            await session.execute(_JOIN, values)
            await session.commit()
        self._joined = True

    async def confirm(self, revision: int) -> bool:
        """Whether this worker was in the list until now. If not it is again, but changes meanwhile did not wait for
        it, so it has to look for them once more."""
        if not self._joined:
            return True
        async with self._database.feed() as session:
            status = msgspec.json.encode(self.report()).decode()
            values = {"id": self.id, "revision": revision, "forgotten": FORGOTTEN, "status": status}
            result: Any = await session.execute(_CONFIRM, values)
            await session.commit()
        if result.rowcount == 0:
            await self.join(revision)
        return bool(result.rowcount)

    async def leave(self) -> None:
        self._joined = False
        try:
            async with asyncio.timeout(2):
                async with self._database.feed() as session:
                    await session.execute(_LEAVE, {"id": self.id})
                    await session.commit()
        except Exception:  # noqa: S110 - a dead database must not keep a worker from ending
            pass

    async def _forget_dead(self, session: Any) -> None:
        """Strikes off workers of this machine whose process is gone: they were killed, and cannot come back."""
        rows = (await session.execute(_HERE, {"host": self.host})).scalars()
        dead = [pid for pid in rows if not _alive(pid)]
        if dead:
            await session.execute(_FORGET, {"host": self.host, "pids": dead})


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _machine() -> str:
    """Names the set of processes that process ids are unique in: this machine since its start, or this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


async def wait_for(database: Database, revision: int) -> Propagation:
    """Waits until every live worker has confirmed the revision, two seconds at most. Never raises for a slow one;
    raises `SQLAlchemyError` when the database goes away and nobody can say which they are."""
    started = time.monotonic()
    pause = 0.004
    pending: list[str] = []
    nodes: list[Any] | None = None
    while True:
        elapsed = time.monotonic() - started
        try:
            nodes = await live_nodes(database)
        except SQLAlchemyError:
            if nodes is None and elapsed >= PATIENCE:
                raise
        else:
            pending = [node.name for node in nodes if node.revision < revision]
            if not pending or elapsed >= PATIENCE:
                return Propagation(
                    confirmed=len(nodes) - len(pending),
                    total=len(nodes),
                    pending=pending,
                    elapsed_ms=round((time.monotonic() - started) * 1000, 1),
                )
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.05)


async def live_nodes(database: Database) -> list[Any]:
    """`name`, confirmed `revision` and `seen_at` of every gateway worker that somebody has seen lately."""
    async with database.service() as session:
        return list((await session.execute(_ALL, {"forgotten": FORGOTTEN})).all())
