"""The list of workers with their confirmed revisions, and the wait for their confirmations (`propagation` in the API).

A worker that is suspended or disconnected stays in the list. It is treated as pending until it returns, or until it has
sent no heartbeat for `NODE_EXPIRY_SECONDS`. A worker that stops properly removes itself from the list.
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
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database

#: A worker that has sent no heartbeat for this time is treated as dead.
NODE_EXPIRY_SECONDS = 120.0
#: Maximum time for which a change waits for the confirmations of the workers.
PROPAGATION_TIMEOUT_SECONDS = 2.0
_LEAVE_TIMEOUT_SECONDS = 2.0
_FIRST_POLL_SECONDS = 0.004
_MAX_POLL_SECONDS = 0.05

_JOIN = text(
    "INSERT INTO nodes (id, name, kind, pid, host, revision) VALUES (:id, :name, :kind, :pid, :host, :revision)"
    " ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, seen_at = now()"
)
# A worker whose last heartbeat is older than half of the expiry time cannot confirm. It must join again. So no worker
# confirms at the moment at which other processes begin to count it as dead.
_CONFIRM = text(
    "UPDATE nodes SET revision = :revision, seen_at = now(), status = CAST(:status AS jsonb)"
    " WHERE id = :id AND seen_at > now() - make_interval(secs => :expiry / 2)"
)
_LEAVE = text("DELETE FROM nodes WHERE id = :id")
_LIVE_NODES = text(
    "SELECT name, revision, seen_at FROM nodes"
    " WHERE kind = 'gateway' AND seen_at > now() - make_interval(secs => :expiry) ORDER BY name"
)
_OTHER_HOSTS = text(
    "SELECT DISTINCT host FROM nodes"
    " WHERE kind = 'gateway' AND host <> :host AND seen_at > now() - make_interval(secs => :expiry) ORDER BY host"
)
_DELETE_DEAD = text("DELETE FROM nodes WHERE host = :host AND pid = ANY(:pids)")
_PIDS_ON_HOST = text("SELECT pid FROM nodes WHERE host = :host")


class Propagation(msgspec.Struct, kw_only=True):
    """The progress of a change: the number of workers that have applied it, and the names of the workers that have not
    confirmed it."""

    confirmed: int
    total: int
    pending: list[str]
    elapsed_ms: float

    def as_dict(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


class Node:
    """This worker's entry in the list of workers."""

    def __init__(self, database: Database, *, kind: str = "gateway") -> None:
        self.id: UUID = new_id()
        self.host = machine_name()
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self._database = database
        self._kind = kind
        self._joined = False
        #: returns the status of this worker for each heartbeat: `active`, the number of model calls in progress
        self.report: Callable[[], dict[str, Any]] = dict

    async def join(self, revision: int) -> None:
        """Add this worker to the list, and remove dead workers of this machine."""
        async with self._database.feed() as session:
            await self._remove_dead(session)
            values = {
                "id": self.id, "name": self.name, "kind": self._kind,
                "pid": os.getpid(), "host": self.host, "revision": revision,
            }  # fmt: skip
            await session.execute(_JOIN, values)
            await session.commit()
        self._joined = True

    async def confirm(self, revision: int) -> bool:
        """Confirm the revision. Returns False if this worker was not in the list, or was close to its expiry. It has
        then joined again, and the caller must read the changes once more, because changes that were made in the
        meantime did not wait for this worker."""
        if not self._joined:
            return True
        async with self._database.feed() as session:
            status = msgspec.json.encode(self.report()).decode()
            values = {"id": self.id, "revision": revision, "expiry": NODE_EXPIRY_SECONDS, "status": status}
            result: Any = await session.execute(_CONFIRM, values)
            await session.commit()
        if result.rowcount == 0:
            await self.join(revision)
        return bool(result.rowcount)

    async def leave(self) -> None:
        self._joined = False
        try:
            async with asyncio.timeout(_LEAVE_TIMEOUT_SECONDS):
                async with self._database.feed() as session:
                    await session.execute(_LEAVE, {"id": self.id})
                    await session.commit()
        except Exception:  # noqa: S110 - an unreachable database must not keep a worker from stopping
            pass

    async def _remove_dead(self, session: Any) -> None:
        """Remove the workers of this machine whose process no longer exists. They were killed and cannot return."""
        rows = (await session.execute(_PIDS_ON_HOST, {"host": self.host})).scalars()
        dead = [pid for pid in rows if not _alive(pid)]
        if dead:
            await session.execute(_DELETE_DEAD, {"host": self.host, "pids": dead})


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def other_machines(session: AsyncSession, own: str) -> list[str]:
    """Return the names of the other machines (`machine_name`) whose gateway workers use this database."""
    return list((await session.execute(_OTHER_HOSTS, {"host": own, "expiry": NODE_EXPIRY_SECONDS})).scalars())


def machine_name() -> str:
    """Return a name of the scope in which process ids are unique: this boot of the machine, or this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


async def wait_until_confirmed(database: Database, revision: int) -> Propagation:
    """Wait until every live worker has confirmed the revision, at most two seconds. Slower workers are reported as
    pending. Raises `SQLAlchemyError` if the list of workers cannot be read."""
    started = time.monotonic()
    pause_seconds = _FIRST_POLL_SECONDS
    pending: list[str] = []
    nodes: list[Any] | None = None
    while True:
        elapsed = time.monotonic() - started
        try:
            nodes = await live_nodes(database)
        except SQLAlchemyError:
            if nodes is None and elapsed >= PROPAGATION_TIMEOUT_SECONDS:
                raise
        else:
            pending = [node.name for node in nodes if node.revision < revision]
            if not pending or elapsed >= PROPAGATION_TIMEOUT_SECONDS:
                return Propagation(
                    confirmed=len(nodes) - len(pending),
                    total=len(nodes),
                    pending=pending,
                    elapsed_ms=round((time.monotonic() - started) * 1000, 1),
                )
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 1.5, _MAX_POLL_SECONDS)


async def live_nodes(database: Database) -> list[Any]:
    """Return the `name`, the confirmed `revision` and the `seen_at` of every gateway worker whose heartbeat has not
    expired."""
    async with database.service() as session:
        return list((await session.execute(_LIVE_NODES, {"expiry": NODE_EXPIRY_SECONDS})).all())
