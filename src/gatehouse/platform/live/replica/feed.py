"""Follows the revisions: receives a NOTIFY for each revision, reads its changes, and applies them to the replica.

Each worker runs one such task. It sends a heartbeat twice a second even if nothing changes. Each heartbeat gives the
worker a lease: the worker may use its state for `LEASE_SECONDS` from the start of the query. A change waits longer than
that for workers that do not confirm (`nodes.PROPAGATION_TIMEOUT_SECONDS`). So after the response to a change, no worker
sends a first byte under the old state, not even a worker that was suspended. A worker that cannot reach the database
continues with its state, unless `SWITCH_FAIL_MODE` is `closed`.
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
from gatehouse.foundation.tasks import is_running
from gatehouse.platform.changes.change import CHANNEL
from gatehouse.platform.live.nodes import Node
from gatehouse.platform.live.replica.queries import LOADERS
from gatehouse.platform.live.replica.state import Replica

log = structlog.get_logger(__name__)

HEARTBEAT_INTERVAL_SECONDS = 0.5
#: Time for which the state may be used after it was read. It is less than `nodes.PROPAGATION_TIMEOUT_SECONDS`.
LEASE_SECONDS = 1.5
#: Maximum time for which a request waits while a worker with an expired lease catches up.
CATCH_UP_TIMEOUT_SECONDS = 1.0
#: Maximum time of the same wait in a worker that was suspended. It tries again after an error, because the error may
#: come from a connection that ended during the suspension.
RESUMED_TIMEOUT_SECONDS = 5.0
_RESUMED_RETRY_SECONDS = 0.1
#: With `SWITCH_FAIL_MODE=closed`, requests are refused once the database has been unreachable for this time.
FAIL_CLOSED_AFTER_SECONDS = 10.0
#: A worker that is further behind than this number of revisions reloads everything, which is faster than applying the
#: changes.
MAX_REVISIONS_BEHIND = 5_000
_LISTEN_TIMEOUT_SECONDS = 5.0

# Reads the head together with the changes, in order to detect a restored backup and deleted changes.
_CHANGES = text(
    "SELECT h.revision AS head, c.revision, c.tenant_id, c.topic, c.key FROM revision_head h LEFT JOIN changes c"
    " ON c.revision > :revision AND h.revision - :revision <= :limit ORDER BY c.revision"
)
_HEAD = text("SELECT revision FROM revision_head")

#: Receives the tenants whose policy changed. It returns when their snapshots are replaced.
PolicyListener = Callable[[set[str]], Awaitable[None]]


class SwitchesUnknown(Unavailable):
    code = "switch_state_unknown"
    message = "This worker cannot reach the database, and SWITCH_FAIL_MODE forbids requests without it."


class Feed:
    """The change feed of one worker. `fail_closed` is `SWITCH_FAIL_MODE=closed`."""

    def __init__(
        self, database: Database, replica: Replica, node: Node, on_policy: PolicyListener, *, fail_closed: bool = False
    ) -> None:
        self._database = database
        self._replica = replica
        self._node = node
        self._on_policy = on_policy
        self._fail_closed = fail_closed
        self._catch_up_lock = asyncio.Lock()
        self._follower: asyncio.Task[None] | None = None
        #: the task that catches up for all waiting requests together
        self._catch_up_task: asyncio.Task[None] | None = None
        self._ticker: asyncio.TimerHandle | None = None
        #: monotonic time; all changes committed before it have been applied
        self.last_contact = time.monotonic()
        #: whether the last attempt to reach the database failed
        self.lost = False
        #: monotonic time of the last timer tick; ticks stop while this process is suspended
        self._last_tick = time.monotonic()
        #: whether this process was suspended and has not yet tried to reach the database since then
        self._resumed = False

    async def start(self) -> None:
        """Load the whole state, and start to follow the revisions. Exceptions of the database propagate."""
        self._replica.revision = await self._load_all()
        await self._node.join(self._replica.revision)
        # Changes that were committed before this worker joined did not wait for its confirmation.
        await self.catch_up()
        self._tick()
        self._follower = asyncio.create_task(self._follow(), name="change feed")

    async def stop(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        for task in (self._follower, self._catch_up_task):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
        await self._node.leave()

    @property
    def lag_seconds(self) -> float:
        """Return the age of the replica's state in seconds."""
        return time.monotonic() - self.last_contact

    @property
    def ended(self) -> bool:
        """Return True if the task that follows the revisions has ended. Only a new process recovers from this."""
        return self._follower is not None and self._follower.done()

    def current(self) -> bool:
        """Return whether a first byte may be sent under the current state. The check usually costs one clock
        reading."""
        now = time.monotonic()
        lag = now - self.last_contact
        if lag <= LEASE_SECONDS:
            return True
        # Without the database, the worker continues with its state. It must retry first if it was suspended.
        return (
            self.lost and not self._was_suspended(now) and not (self._fail_closed and lag > FAIL_CLOSED_AFTER_SECONDS)
        )

    async def before_attempt(self) -> None:
        """Wait until the state is current (see `engine.ports.Switches.in_touch`). Usually returns at once. Raises
        `SwitchesUnknown`."""
        if self.current():
            return
        if self._catch_up_task is None or self._catch_up_task.done():
            self._catch_up_task = asyncio.create_task(self._catch_up_if_stale())
        was_suspended = self._was_suspended(time.monotonic())
        timeout = RESUMED_TIMEOUT_SECONDS if was_suspended else CATCH_UP_TIMEOUT_SECONDS
        # The task is not cancelled after the timeout, because cancelling a query may take seconds.
        await asyncio.wait({self._catch_up_task}, timeout=timeout)
        if not was_suspended and not self.current() and self._was_suspended(time.monotonic()):
            # The process was suspended during the wait.
            await self.before_attempt()
            return
        if not self.current():
            self._mark_lost("no answer in time")
            self._last_tick = time.monotonic()
            self._resumed = False
        if self._fail_closed and self.lag_seconds > FAIL_CLOSED_AFTER_SECONDS:
            raise SwitchesUnknown

    async def catch_up(self) -> None:
        """Apply all revisions committed so far, and confirm the last of them."""
        async with self._catch_up_lock:
            await self._apply_all()

    def _was_suspended(self, now: float) -> bool:
        return self._resumed or now - self._last_tick > LEASE_SECONDS

    async def _catch_up_if_stale(self) -> None:
        # The time begins with the first error, because the process may be suspended before it.
        deadline: float | None = None
        while is_running() and self.lag_seconds > LEASE_SECONDS:
            try:
                async with self._catch_up_lock:
                    if self.lag_seconds > LEASE_SECONDS:
                        await self._apply_all()
            except Exception as error:
                now = time.monotonic()
                deadline = now + RESUMED_TIMEOUT_SECONDS if deadline is None else deadline
                if now >= deadline or not self._was_suspended(now):
                    self._mark_lost(type(error).__name__)
                    return
                await asyncio.sleep(_RESUMED_RETRY_SECONDS)

    async def _apply_all(self) -> None:
        # Changes do not wait for a worker that is not in the list. So state that was read before the worker joined
        # gives no lease.
        while not await self._apply_once():
            pass

    async def _apply_once(self) -> bool:
        """Apply and confirm the changes. Returns whether the worker was in the list of workers during the whole
        time."""
        started = time.monotonic()
        async with self._database.feed() as session:
            values = {"revision": self._replica.revision, "limit": MAX_REVISIONS_BEHIND}
            rows = (await session.execute(_CHANGES, values)).all()
            revision = rows[0].head
            if self._follows(rows):
                policies = await self._apply(session, rows)
        if not self._follows(rows):
            revision = await self._load_all()
            policies = {str(tenant_id) for tenant_id in self._replica.tenants}
        if policies:
            await self._on_policy(policies)
        self._notify_waiting(rows)
        self._replica.revision = revision
        # The event loop runs once, so that requests admitted under the old state proceed before the confirmation.
        await asyncio.sleep(0)
        listed = await self._node.confirm(revision)
        if listed:
            self.last_contact = started
            if self.lag_seconds <= LEASE_SECONDS:
                # A confirmation that began before a suspension says nothing about the database now.
                self._resumed = False
            if self.lost:
                self.lost = False
                log.info("change_feed.back", revision=revision)
        return listed

    def _follows(self, rows: Sequence[Any]) -> bool:
        """Return whether `rows` continue the revision of the replica without a gap."""
        current, head, first = self._replica.revision, rows[0].head, rows[0].revision
        return bool(head == current or first == current + 1)

    async def _apply(self, session: AsyncSession, rows: Sequence[Any]) -> set[str]:
        """Load the changed rows into the replica. Returns the ids of the tenants whose policy changed."""
        touched: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            if row.revision is not None:
                touched[row.topic].add(row.key)
        for topic, keys in touched.items():
            if topic in LOADERS:
                await LOADERS[topic](session, self._replica, sorted(keys))
        return touched["policy"]

    def _notify_waiting(self, rows: Sequence[Any]) -> None:
        """Wake the long polls that wait for changes of an organization. Their next read sees these changes."""
        if not self._follows(rows):
            self._replica.news.tell_all()
            return
        changed = [row for row in rows if row.revision is not None]
        if any(row.topic == "outpost_trust" for row in changed):
            # Any waiting outpost may have lost the platform's trust.
            self._replica.news.tell_all()
            return
        # The key of a `policy` change is the organization whose policy changed. `tenant_id` may be the organization of
        # the operator who changed it.
        tenant_ids = {UUID(row.key) if row.topic == "policy" else row.tenant_id for row in changed}
        self._replica.news.tell(tenant_ids)

    async def _load_all(self) -> int:
        """Load the whole state into a new replica, and move its data into this replica. Returns the revision."""
        fresh = Replica()
        async with self._database.feed() as session:
            # The revision is read first, so that a change committed while the other tables are loaded is loaded twice
            # instead of missed.
            revision = int((await session.execute(_HEAD)).scalar_one())
            for load in LOADERS.values():
                await load(session, fresh, None)
        self._replica.become(fresh)
        return revision

    async def _follow(self) -> None:
        while is_running():
            try:
                await self._listen()
            except Exception as error:
                # Catches any exception, because a worker that no longer follows the revisions must not appear healthy.
                self._mark_lost(type(error).__name__)
                await asyncio.sleep(HEARTBEAT_INTERVAL_SECONDS)

    async def _listen(self) -> None:
        connection = await self._database.service_connection()
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            while True:
                # Catches up even without a notification, because the heartbeat renews the lease. `wait_for` is not
                # used, because it can swallow a cancellation, and then the task would never end.
                async with asyncio.timeout(_LISTEN_TIMEOUT_SECONDS):
                    await self.catch_up()
                self._replica.forget_expired(time.time())
                async for _ in connection.notifies(timeout=HEARTBEAT_INTERVAL_SECONDS, stop_after=1):
                    pass

    def _mark_lost(self, reason: str) -> None:
        if not self.lost:
            self.lost = True
            log.warning("change_feed.lost", reason=reason)

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._last_tick > LEASE_SECONDS:
            # This process was suspended, so its knowledge about the database is outdated.
            self.lost = False
            self._resumed = True
        self._last_tick = now
        self._ticker = asyncio.get_running_loop().call_later(HEARTBEAT_INTERVAL_SECONDS / 2, self._tick)
