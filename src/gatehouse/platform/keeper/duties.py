"""Runs background work: queued jobs, scheduled jobs, and duties, which are repeated every few seconds."""

import asyncio
import importlib
import logging
from typing import Final

from sqlalchemy import text

from gatehouse.administration.duties import Duty, repeat_all
from gatehouse.administration.job_worker import JobWorker
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.changes import outbox
from gatehouse.platform.live import approvals
from gatehouse.platform.operations.alerts import notifying as alert_notifications
from gatehouse.platform.operations.alerts import schedule as alert_rules
from gatehouse.platform.operations.portal_notices import sending as portal_notices
from gatehouse.platform.operations.siem import forwarding as siem
from gatehouse.platform.operations.siem.queue import ForwardingBacklog
from gatehouse.platform.operations.siem.queue import enqueue as for_siem
from gatehouse.platform.operations.webhooks import delivering as webhooks
from gatehouse.platform.operations.webhooks.listening import enqueue as for_webhooks
from gatehouse.platform.operations.webhooks.queue import Lag
from gatehouse.platform.records.archive.jobs import ArchiverFailures
from gatehouse.platform.routing.providers import schedule as provider_health

#: The modules that define jobs. They are imported before any job runs.
MODULES: Final = (
    "gatehouse.platform.keeper.housekeeping",
    "gatehouse.platform.spending.invoices",
    "gatehouse.platform.access.anonymising",
    "gatehouse.platform.access.users.mailing",
    "gatehouse.platform.access.mail_test.service",
    "gatehouse.platform.records.archive.jobs",
    "gatehouse.platform.operations.webhooks.delivering",
    "gatehouse.platform.mcp.connections.revocations",
    "gatehouse.platform.mcp.tools.watching",
)

#: The listeners that receive the events of the outbox.
OUTBOX_LISTENERS: Final[tuple[outbox.Listener, ...]] = (for_webhooks, for_siem)

#: The last measured number of events that wait to be forwarded to a SIEM.
SIEM_BACKLOG: Final = ForwardingBacklog()

#: The last measured number of organizations whose last run of the archiver failed.
ARCHIVER_FAILURES: Final = ArchiverFailures()

#: The last measured delay of webhook events.
WEBHOOK_LAG: Final = Lag()


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
        await session.execute(text("SELECT gatehouse_fold_spend()"))
        await session.commit()


async def _read_outbox(tools: Tools) -> None:
    while await outbox.dispatch(tools.database, OUTBOX_LISTENERS) == outbox.MAX_BATCH_EVENTS:
        pass


#: The duties of every machine that runs background work.
DUTIES: Final[tuple[Duty[Tools], ...]] = (
    Duty("provider health checks", 2.0, _check_providers),
    Duty("approvals of dead workers", 5.0, _end_approvals),
    Duty("alert rules", 2.0, alert_rules.run_due),
    # This duty runs until the database fails. The interval is the delay before it starts again.
    Duty("alert notifications", 1.0, alert_notifications.notify),
    Duty("outbox", 0.5, _read_outbox),
    Duty("counts of usage", 5.0, _fold_usage_counts),
    # This duty also runs until the database fails.
    Duty("webhook deliveries", 1.0, webhooks.deliver),
    Duty("dead letters of webhooks", 1.0, webhooks.mark_dead_letters),
    Duty("notices to the portal", 2.0, portal_notices.send_due),
    Duty("webhooks' lag", 5.0, WEBHOOK_LAG.measure),
    # This duty also runs until the database fails.
    Duty("SIEM forwarding", 1.0, siem.forward),
    Duty("SIEM backlog", 10.0, SIEM_BACKLOG.measure),
    Duty("failures of the archiver", 60.0, ARCHIVER_FAILURES.measure),
)

_MAX_CONCURRENT_JOBS: Final = 8
#: Time for which jobs in progress may continue when the process stops.
_GRACE_SECONDS: Final = 10.0


def job_worker(tools: Tools) -> JobWorker[Tools]:
    """Return the worker for the jobs of `MODULES`."""
    for module in MODULES:
        importlib.import_module(module)
    return JobWorker(JOBS, tools, tools.database, slots=_MAX_CONCURRENT_JOBS, grace_seconds=_GRACE_SECONDS)


async def work(tools: Tools) -> None:
    """Run jobs and duties until cancelled. If the database is unreachable, waits for it."""
    # psycopg logs every failed attempt to connect. The worker logs an outage only once.
    logging.getLogger("psycopg.pool").setLevel("CRITICAL")
    async with asyncio.TaskGroup() as group:
        group.create_task(job_worker(tools).run(), name="jobs")
        group.create_task(repeat_all(DUTIES, tools), name="duties")
