"""Runs jobs: queued jobs, scheduled jobs, and duties that are repeated every few seconds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

import structlog
from procrastinate import PsycopgConnector
from sqlalchemy import text

from gatehouse.administration.duties import repeat
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.foundation.tasks import is_running
from gatehouse.platform.background import jobs
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.changes import outbox
from gatehouse.platform.live import approvals
from gatehouse.platform.operations.alerts import notifying as alert_notifications
from gatehouse.platform.operations.alerts import schedule as alert_rules
from gatehouse.platform.operations.portal_notices import telling as portal_notices
from gatehouse.platform.operations.siem import forwarding as siem
from gatehouse.platform.operations.siem.backlog import ForwardingBacklog
from gatehouse.platform.operations.siem.listening import enqueue as for_siem
from gatehouse.platform.operations.webhooks import delivering as webhooks
from gatehouse.platform.operations.webhooks.lag import Lag
from gatehouse.platform.operations.webhooks.listening import enqueue as for_webhooks
from gatehouse.platform.routing.providers import schedule as provider_health

log = structlog.get_logger(__name__)

#: The modules with jobs; they are imported before any job runs.
MODULES: Final = (
    "gatehouse.platform.keeper.housekeeping",
    "gatehouse.platform.spending.invoices",
    "gatehouse.platform.access.anonymising",
    "gatehouse.platform.records.archive.jobs",
    "gatehouse.platform.operations.webhooks.delivering",
)

#: Listeners for the outbox's events.
OUTBOX_LISTENERS: Final[tuple[outbox.Listener, ...]] = (for_webhooks, for_siem)

#: The last measured number of events that wait to be forwarded to a SIEM.
SIEM_BACKLOG: Final = ForwardingBacklog()

#: The last measured lag of webhooks' events.
WEBHOOK_LAG: Final = Lag()


class Duty(NamedTuple):
    """Work that every machine with jobs repeats after `seconds`. It must be safe to run on several at once."""

    name: str
    seconds: float
    work: Callable[[Tools], Awaitable[object]]


async def _check_providers(tools: Tools) -> None:
    while (
        await provider_health.run_due(tools.database, tools.outbound, tools.sealer)
        == provider_health.MAX_CONCURRENT_CHECKS
    ):
        pass


async def _end_approvals(tools: Tools) -> None:
    async with tools.database.service() as session:
        await approvals.end_abandoned(session)
        await session.commit()


async def _fold_usage_counts(tools: Tools) -> None:
    async with tools.database.service() as session:
        await session.execute(text("SELECT gatehouse_fold_usage_counts()"))
        await session.commit()


async def _read_outbox(tools: Tools) -> None:
    while await outbox.dispatch(tools.database, OUTBOX_LISTENERS) == outbox.MAX_BATCH_EVENTS:
        pass


DUTIES: Final = (
    Duty("provider health checks", 2.0, _check_providers),
    Duty("approvals of dead workers", 5.0, _end_approvals),
    Duty("alert rules", 2.0, alert_rules.run_due),
    # Runs until the database fails; the interval is the delay before a retry.
    Duty("alert notifications", 1.0, alert_notifications.notify),
    Duty("outbox", 0.5, _read_outbox),
    Duty("counts of usage", 5.0, _fold_usage_counts),
    # The same.
    Duty("webhook deliveries", 1.0, webhooks.deliver),
    Duty("dead letters of webhooks", 1.0, webhooks.mark_dead_letters),
    Duty("notices to the portal", 2.0, portal_notices.send_due),
    Duty("webhooks' lag", 5.0, WEBHOOK_LAG.measure),
    # The same.
    Duty("SIEM forwarding", 1.0, siem.forward),
    Duty("SIEM backlog", 10.0, SIEM_BACKLOG.measure),
)

_MAX_CONCURRENT_JOBS: Final = 8
_RETRY_SECONDS: Final = 2.0


async def work(tools: Tools) -> None:
    """Run jobs until cancelled; jobs in progress then have ten seconds. Waits for an unreachable database."""
    # psycopg logs every failed attempt to connect; the outage is logged once, below.
    logging.getLogger("psycopg.pool").setLevel("CRITICAL")
    logging.getLogger("procrastinate").setLevel("WARNING")
    async with asyncio.TaskGroup() as group:
        group.create_task(_run_jobs(tools))
        for duty in DUTIES:
            group.create_task(repeat(duty.name, duty.seconds, partial(duty.work, tools)))


async def _run_jobs(tools: Tools) -> None:
    jobs.app.import_paths = MODULES
    connector = PsycopgConnector(
        conninfo=tools.database.url,
        configure=partial(roles.become_async, role=SERVICE_ROLE),
        min_size=1,
        max_size=4,
        # For getting a connection. A stopping worker unregisters itself, and waits this long for a dead database.
        timeout=10.0,
        kwargs=roles.parameters(tools.database.url, connect_timeout=5, application_name="gatehouse jobs"),
    )
    failure_logged = False
    with jobs.app.replace_connector(connector):
        while is_running():
            try:
                async with jobs.app.open_async():
                    failure_logged = False
                    await jobs.app.run_worker_async(
                        concurrency=_MAX_CONCURRENT_JOBS,
                        install_signal_handlers=False,
                        shutdown_graceful_timeout=10,
                        delete_jobs="successful",
                        additional_context=jobs.context(tools),
                    )
                reason = "worker ended"
            except Exception as error:
                reason = type(error).__name__
            if not failure_logged:
                log.warning("jobs.interrupted", reason=reason)
                failure_logged = True
            await asyncio.sleep(_RETRY_SECONDS)
