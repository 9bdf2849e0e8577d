"""Follows the revisions: hears of each by NOTIFY, reads what changed, and brings the replica up to it.

One task a worker. It beats twice a second even when nothing changes, so that a worker that was stopped or cut off
can tell: what it knows is good for `LEASE` seconds from the question on, and a change waits longer than that for
workers that do not answer (`nodes.PATIENCE`). So when a change's answer is out, no first byte leaves under the old
state, from a confirmed worker or from one that was merely asleep. A worker that cannot reach the database has nobody
to ask and goes on, unless `SWITCH_FAIL_MODE` says otherwise.
"""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import wanted
from gatehouse.platform.change import CHANNEL
from gatehouse.platform.live.nodes import Node
from gatehouse.platform.live.queries import LOADERS
from gatehouse.platform.live.state import Replica

log = structlog.get_logger(__name__)

#: seconds between two beats
BEAT = 0.5
#: seconds for which what was read stays good to send by; less than `nodes.PATIENCE`
LEASE = 1.5
#: seconds that a request waits for a worker that was away to catch up
HURRY = 1.0
#: seconds without the database after which `SWITCH_FAIL_MODE=closed` stops
LOST = 10.0
#: revisions behind which reading everything again is less work than following
FAR_BEHIND = 5_000

# The head comes with them: a database restored from a backup, or changes deleted meanwhile, must not go unseen.
_CHANGES = text(
    "SELECT h.revision AS head, c.revision, c.tenant_id, c.topic, c.key FROM revision_head h LEFT JOIN changes c"
    " ON c.revision > :revision AND h.revision - :revision <= :far ORDER BY c.revision"
)
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
        self._follower: asyncio.Task[None] | None = None
        #: the catching up that requests wait for together
        self._hurried: asyncio.Task[None] | None = None
        self._ticker: asyncio.TimerHandle | None = None
        #: monotonic time up to which everything committed is known
        self.last_contact = time.monotonic()
        #: whether the last try to reach the database failed
        self.lost = False
        #: monotonic time of this process's last sign of life, with or without the database
        self._last_tick = time.monotonic()

    async def start(self) -> None:
        """Loads everything, then follows. Raises when the database cannot be reached."""
        self._replica.revision = await self._load_all()
        await self._node.join(self._replica.revision)
        # What committed before this worker was in the list did not wait for it.
        await self.catch_up()
        self._tick()
        self._follower = asyncio.create_task(self._follow(), name="change feed")

    async def stop(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        for task in (self._follower, self._hurried):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
        await self._node.leave()

    @property
    def lag_seconds(self) -> float:
        """How long ago the database last answered this worker."""
        return time.monotonic() - self.last_contact

    @property
    def ended(self) -> bool:
        """Whether nobody follows any more, which only a new process mends."""
        return self._follower is not None and self._follower.done()

    def current(self) -> bool:
        """Whether a first byte may be sent by what is known now. A clock reading in the ordinary case."""
        now = time.monotonic()
        lag = now - self.last_contact
        if lag <= LEASE:
            return True
        # Without the database one goes on as one is; but after a sleep one has not even tried.
        return self.lost and now - self._last_tick <= LEASE and not (self._fail_closed and lag > LOST)

    async def before_attempt(self) -> None:
        """See `engine.ports.Switches.in_touch`. Returns at once in the ordinary case."""
        if self.current():
            return
        if self._hurried is None or self._hurried.done():
            self._hurried = asyncio.create_task(self._hurry())
        # Not cancelled when the time is up: a cancelled query may take seconds to let go.
        await asyncio.wait({self._hurried}, timeout=HURRY)
        if not self.current():
            self._lose("no answer in time")
            self._last_tick = time.monotonic()
        if self._fail_closed and self.lag_seconds > LOST:
            raise SwitchesUnknown

    async def catch_up(self) -> None:
        """Applies every revision there is by now, and confirms the last."""
        async with self._catching_up:
            await self._rounds()

    async def _hurry(self) -> None:
        try:
            async with self._catching_up:
                if time.monotonic() - self.last_contact > LEASE:
                    await self._rounds()
        except Exception as error:
            self._lose(type(error).__name__)

    async def _rounds(self) -> None:
        # A worker that had been given up was not waited for: what it read before it was back in the list is no lease.
        while not await self._round():
            pass

    async def _round(self) -> bool:
        """Whether the changes waited for this worker all the time."""
        asked = time.monotonic()
        async with self._database.feed() as session:
            values = {"revision": self._replica.revision, "far": FAR_BEHIND}
            rows = (await session.execute(_CHANGES, values)).all()
            revision = rows[0].head
            if self._follows(rows):
                policies = await self._apply(session, rows)
        if not self._follows(rows):
            revision = await self._load_all()
            policies = {str(tenant_id) for tenant_id in self._replica.tenants}
        if policies:
            await self._on_policy(policies)
        self._tell(rows)
        self._replica.revision = revision
        # Once around the loop: what was let through under the old state is on its way before this is confirmed.
        await asyncio.sleep(0)
        listed = await self._node.confirm(revision)
        if listed:
            self.last_contact = asked
            if self.lost:
                self.lost = False
                log.info("change_feed.back", revision=revision)
        return listed

    def _follows(self, rows: Sequence[Any]) -> bool:
        """Whether these are all the revisions from the replica's on: each has its changes, and none is left out."""
        known, head, first = self._replica.revision, rows[0].head, rows[0].revision
        return bool(head == known or first == known + 1)

    async def _apply(self, session: AsyncSession, rows: Sequence[Any]) -> set[str]:
        """Loads what changed. The answer is the tenants whose policy did."""
        touched: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            if row.revision is not None:
                touched[row.topic].add(row.key)
        for topic, keys in touched.items():
            if topic in LOADERS:
                await LOADERS[topic](session, self._replica, sorted(keys))
        return touched["policy"]

    def _tell(self, rows: Sequence[Any]) -> None:
        """Those who wait for news of an organization: what is read of it from now on has these changes."""
        if not self._follows(rows):
            self._replica.news.tell_all()
            return
        changed = [row for row in rows if row.revision is not None]
        if any(row.topic == "outpost_trust" for row in changed):
            # An outpost that waits may be none any more, whoever's it was.
            self._replica.news.tell_all()
            return
        # Of a policy the key is the organization, whoever has changed it.
        told = {UUID(row.key) if row.topic == "policy" else row.tenant_id for row in changed}
        self._replica.news.tell(told)

    async def _load_all(self) -> int:
        """Everything, into a replica that then takes this one's place. The answer is its revision."""
        fresh = Replica()
        async with self._database.feed() as session:
            # The revision first: what commits while the rest loads is then loaded twice, never missed.
            revision = int((await session.execute(_HEAD)).scalar_one())
            for load in LOADERS.values():
                await load(session, fresh, None)
        self._replica.become(fresh)
        return revision

    async def _follow(self) -> None:
        while wanted():
            try:
                await self._listen()
            except Exception as error:
                # Whatever it is: a worker that no longer follows must not look like one that does.
                self._lose(type(error).__name__)
                await asyncio.sleep(BEAT)

    async def _listen(self) -> None:
        connection = await self._database.service_connection()
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            while True:
                # Also without news: the beat confirms that this worker is alive and in touch.
                # Not `wait_for`: it can lose a cancellation, and this would follow on after its end.
                async with asyncio.timeout(5.0):
                    await self.catch_up()
                self._replica.forget_expired(time.time())
                async for _ in connection.notifies(timeout=BEAT, stop_after=1):
                    pass

    def _lose(self, reason: str) -> None:
        if not self.lost:
            self.lost = True
            log.warning("change_feed.lost", reason=reason)

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._last_tick > LEASE:
            # This process was stopped: what it knows about the database is from before.
            self.lost = False
        self._last_tick = now
        self._ticker = asyncio.get_running_loop().call_later(BEAT / 2, self._tick)
