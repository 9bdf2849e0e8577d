"""Starts and stops the keeper process."""

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
from gatehouse.foundation.tasks import is_running
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.installation.first_admin import forget_when_used
from gatehouse.platform.keeper.drain import Drain
from gatehouse.platform.keeper.duties import SIEM_BACKLOG, WEBHOOK_LAG, work
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
    database = Database(database_url, pool_size=4)
    node = Node(database, kind="keeper" if journal else "worker")
    drain = Drain(database_url, settings.gatehouse_home / "journal") if journal else None
    metrics = PlatformMetrics(settings.gatehouse_home)
    if drain is not None:
        metrics.drain_lag.read(drain.lag_seconds)
        drain.start()
    metrics.exporter.start()
    guard = EgressGuard(settings.egress_allowlist, settings.egress_policy)
    outbound = open_outbound(
        settings.outbound, settings.provider_max_connections, guard, max_each=settings.connections_each
    )
    receivers = Receivers(guard)
    runs_jobs = settings.embedded or not journal

    def status() -> dict[str, object]:
        return {"jobs": runs_jobs} if drain is None else {"jobs": runs_jobs, "drain": drain.status}

    tasks = [asyncio.create_task(_send_heartbeats(database, node, status, settings.gatehouse_home))]
    if runs_jobs:
        keys = load_master_keys(settings)
        tools = Tools(
            settings=settings,
            database=database,
            sealer=Sealer(keys.keys, keys.current),
            outbound=outbound,
            clock=SYSTEM_CLOCK,
            receivers=receivers,
            notifications=metrics.notifications,
        )
        metrics.webhook_lag.read(lambda: WEBHOOK_LAG.seconds)
        metrics.siem_backlog.read(lambda: SIEM_BACKLOG.events)
        metrics.siem_failing.read(lambda: SIEM_BACKLOG.failing)
        tasks.append(asyncio.create_task(work(tools)))
    if not journal:
        log.info("worker.started", node=str(node.id))
    await stopping.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if drain is not None:
        await asyncio.to_thread(drain.stop, _FINAL_DRAIN_SECONDS)
    await node.leave()
    await metrics.exporter.stop()
    await outbound.close()
    await receivers.close()
    await database.close()


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
