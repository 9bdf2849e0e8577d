"""Follows the revisions: hears of each by NOTIFY, reads what changed, and brings the replica up to it.

One task a worker. It beats twice a second even when nothing changes, so that a worker that was stopped or cut off
can tell: `before_attempt` is what stands between such a worker and a provider.
"""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

import psycopg
import structlog
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.change import CHANNEL
from gatehouse.platform.live.nodes import Node
from gatehouse.platform.live.queries import LOADERS
from gatehouse.platform.live.state import Replica

log = structlog.get_logger(__name__)

#: seconds between two beats
BEAT = 0.5
#: a gap between beats that a busy loop does not explain: this process was stopped, and must catch up
AWAY = 2.0
#: seconds without the database after which `SWITCH_FAIL_MODE=closed` stops
LOST = 10.0

_CHANGES = text("SELECT revision, tenant_id, topic, key FROM changes WHERE revision > :revision ORDER BY revision")
_HEAD = text("SELECT revision FROM revision_head")

#: told the tenants whose policy changed; done when their snapshots are swapped
PolicyListener = Callable[[set[str]], Awaitable[None]]


class SwitchesUnknown(Unavailable):
    code = "switch_state_unknown"
    message = "This worker lost touch with the database and was told not to go on without it."


class Feed:
    def __init__(
        self, database: Database, replica: Replica, node: Node, on_policy: PolicyListener, *, fail_closed: bool = False
    ) -> None:
        self._database = database
        self._replica = replica
        self._node = node
        self._on_policy = on_policy
        self._fail_closed = fail_closed
        self._catching_up = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        #: monotonic time of the last beat, and of the last answer from the database
        self.last_beat = time.monotonic()
        self.last_contact = time.monotonic()

    async def start(self) -> None:
        """Loads everything, then follows. Raises when the database cannot be reached."""
        await self._load_all()
        await self._node.join(self._replica.revision)
        self._task = asyncio.create_task(self._follow(), name="change feed")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._node.leave()

    @property
    def lag_seconds(self) -> float:
        """How long ago the database last answered this worker."""
        return time.monotonic() - self.last_contact

    async def before_attempt(self) -> None:
        """See `engine.ports.Switches.before_attempt`. Two clock readings in the ordinary case."""
        now = time.monotonic()
        if now - self.last_beat > AWAY:
            with contextlib.suppress(TimeoutError, SQLAlchemyError, psycopg.Error, OSError):
                await asyncio.wait_for(self.catch_up(), 2.0)
        if self._fail_closed and now - self.last_contact > LOST:
            raise SwitchesUnknown

    async def catch_up(self) -> None:
        """Applies every revision there is by now, and confirms the last."""
        async with self._catching_up:
            async with self._database.service() as session:
                rows = (await session.execute(_CHANGES, {"revision": self._replica.revision})).all()
                touched: dict[str, set[str]] = defaultdict(set)
                for row in rows:
                    touched[row.topic].add(str(row.tenant_id) if row.topic == "policy" else row.key)
                for topic, keys in touched.items():
                    if topic in LOADERS:
                        await LOADERS[topic](session, self._replica, sorted(keys))
            if "policy" in touched:
                await self._on_policy(touched["policy"])
            if rows:
                self._replica.revision = rows[-1].revision
            self.last_beat = self.last_contact = time.monotonic()
            await self._node.confirm(self._replica.revision)

    async def _load_all(self) -> None:
        async with self._database.service() as session:
            # The revision first: what commits while the rest loads is then loaded twice, never missed.
            revision = (await session.execute(_HEAD)).scalar_one()
            for load in LOADERS.values():
                await load(session, self._replica, None)
        self._replica.revision = revision
        self.last_beat = self.last_contact = time.monotonic()

    async def _follow(self) -> None:
        while True:
            try:
                await self._listen()
            except (psycopg.Error, SQLAlchemyError, OSError, TimeoutError) as error:
                log.warning("change_feed.lost", error=type(error).__name__)
                self.last_beat = time.monotonic()
                await asyncio.sleep(BEAT)

    async def _listen(self) -> None:
        connection = await self._database.service_connection()
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            while True:
                # Also without news: the beat confirms that this worker is alive and in touch.
                await asyncio.wait_for(self.catch_up(), 5.0)
                self._replica.forget_expired_revocations(time.time())
                async for _ in connection.notifies(timeout=BEAT, stop_after=1):
                    pass
