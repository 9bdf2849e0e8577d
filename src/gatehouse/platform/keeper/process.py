"""Starts the parts of the keeper process, or of a `gatehouse worker`, and stops them in reverse order."""

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog
from sqlalchemy import text

from gatehouse.foundation import log as logs
from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.carriers import open_outbound
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.sealing import Sealer, load_master_keys
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import cancel_all, is_running
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.installation.first_admin import forget_when_used
from gatehouse.platform.keeper.drain import Drain
from gatehouse.platform.keeper.duties import ARCHIVER_FAILURES, SIEM_BACKLOG, WEBHOOK_LAG, work
from gatehouse.platform.live.nodes import Node
from gatehouse.platform.metrics import PlatformMetrics

log = structlog.get_logger(__name__)

#: Time for which the drain may continue after SIGTERM. Records that remain in the journal are stored at the next start.
_FINAL_DRAIN_SECONDS: Final = 20.0
_HEARTBEAT_INTERVAL_SECONDS: Final = 5.0
_HEARTBEAT: Final = text(
    "UPDATE nodes SET status = CAST(:status AS jsonb), seen_at = now() WHERE id = :id RETURNING id"
)


def run(settings: Settings, database_url: str, *, journal: bool) -> None:
    """Run until SIGTERM.

    With `journal`, the process is a child of the supervisor: it drains the journal of this home, and runs jobs only if
    the database is embedded. Without `journal`, it is a `gatehouse worker`.
    """
    logs.configure(settings.log_level)
    asyncio.run(_run(settings, database_url, journal=journal))


async def _run(settings: Settings, database_url: str, *, journal: bool) -> None:
    # A batch consists of thousands of short-lived objects, so frequent garbage collections would cost more than they
    # free.
    gc.freeze()
    gc.set_threshold(100_000)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    # Ctrl-C reaches all processes of a terminal at once. The supervisor stops the keeper after the gateways have
    # written their last records. `gatehouse worker` has no supervisor, so it stops at once.
    loop.add_signal_handler(signal.SIGINT, (lambda: None) if journal else stopping.set)
    keeper = Keeper(settings, database_url, journal=journal)
    await keeper.start()
    try:
        if not journal:
            log.info("worker.started", node=str(keeper.node.id))
        await stopping.wait()
    finally:
        await keeper.stop()


class Keeper:
    """The parts of a keeper, or without `journal` of a `gatehouse worker`. Create it in a running loop."""

    def __init__(self, settings: Settings, database_url: str, *, journal: bool) -> None:
        self.settings = settings
        self.runs_jobs = settings.embedded or not journal
        self.database = Database(database_url, pool_size=4)
        self.metrics = PlatformMetrics(settings.gatehouse_home)
        guard = EgressGuard(settings.egress_allowlist, settings.egress_policy)
        self.receivers = Receivers(guard)
        self.outbound = open_outbound(
            settings.outbound,
            settings.provider_max_connections,
            guard,
            max_per_provider=settings.connections_per_provider,
        )
        self.node = Node(self.database, kind="keeper" if journal else "worker")
        self.drain = Drain(database_url, settings.gatehouse_home / "journal") if journal else None
        self._parts = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Start the parts in order. If one of them raises, the parts that were started before are stopped and the
        exception propagates."""
        async with contextlib.AsyncExitStack() as parts:
            self._open_parts(parts)
            self._start_parts(parts)
            self._parts = parts.pop_all()

    async def stop(self) -> None:
        """Stop the parts in reverse order of the start."""
        await self._parts.aclose()

    def status(self) -> dict[str, object]:
        """Return the status that heartbeats report."""
        if self.drain is None:
            return {"jobs": self.runs_jobs}
        return {"jobs": self.runs_jobs, "drain": self.drain.status}

    def _open_parts(self, parts: contextlib.AsyncExitStack) -> None:
        """Open the parts that other parts use. They are closed last."""
        parts.push_async_callback(self.database.close)
        self.metrics.exporter.start()
        parts.push_async_callback(self.metrics.exporter.stop)
        parts.push_async_callback(self.receivers.close)
        parts.push_async_callback(self.outbound.close)

    def _start_parts(self, parts: contextlib.AsyncExitStack) -> None:
        # The first heartbeat adds this process to the list of workers.
        parts.push_async_callback(self.node.leave)
        if self.drain is not None:
            self.metrics.drain_lag.read(self.drain.lag_seconds)
            self.drain.start()
            parts.push_async_callback(asyncio.to_thread, self.drain.stop, _FINAL_DRAIN_SECONDS)
        heartbeats = _send_heartbeats(self.database, self.node, self.status, self.settings.gatehouse_home)
        parts.push_async_callback(cancel_all, asyncio.create_task(heartbeats, name="heartbeats"))
        if self.runs_jobs:
            tools = self._tools()
            self.metrics.webhook_lag.read(lambda: WEBHOOK_LAG.seconds)
            self.metrics.siem_backlog.read(lambda: SIEM_BACKLOG.events)
            self.metrics.siem_failing.read(lambda: SIEM_BACKLOG.failing)
            self.metrics.archiver_failing.read(lambda: ARCHIVER_FAILURES.organizations)
            parts.push_async_callback(cancel_all, asyncio.create_task(work(tools), name="work"))

    def _tools(self) -> Tools:
        keys = load_master_keys(self.settings)
        return Tools(
            settings=self.settings,
            database=self.database,
            sealer=Sealer(keys.keys, keys.current),
            outbound=self.outbound,
            clock=SYSTEM_CLOCK,
            receivers=self.receivers,
            notifications=self.metrics.notifications,
        )


async def _send_heartbeats(database: Database, node: Node, report: Callable[[], dict[str, object]], home: Path) -> None:
    """Send heartbeats with the status of the process, and delete the first admin's stored password after its
    first use."""
    while is_running():
        status = msgspec.json.encode(report()).decode()
        # Errors are ignored: the drain or the loop that runs jobs logs an outage of the database, and health checks
        # detect missing heartbeats.
        with contextlib.suppress(Exception):
            # Heartbeats use a separate pool, because jobs can use all connections of the other pool for a long time.
            async with database.feed() as session:
                row = (await session.execute(_HEARTBEAT, {"id": node.id, "status": status})).first()
                await session.commit()
            if row is None:
                await node.join(0)
            await forget_when_used(database, home)
        await asyncio.sleep(_HEARTBEAT_INTERVAL_SECONDS)
