"""Works on jobs: those that were queued, those that the clock starts, and duties every few seconds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

import structlog
from procrastinate import PsycopgConnector
from sqlalchemy import text

from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.foundation.tasks import wanted
from gatehouse.platform import jobs, outbox
from gatehouse.platform.jobs import Tools
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

#: Every module with jobs, a line each: imported before work starts.
MODULES: Final = (
    "gatehouse.platform.keeper.housekeeping",
    "gatehouse.platform.spending.invoices",
    "gatehouse.platform.access.anonymising",
    "gatehouse.platform.records.archive.jobs",
    "gatehouse.platform.operations.webhooks.delivering",
)

#: Who hears of events.
OUTBOX_LISTENERS: Final[tuple[outbox.Listener, ...]] = (for_webhooks, for_siem)

#: What this process last saw of what waits to be forwarded.
SIEM_BACKLOG: Final = ForwardingBacklog()


#: And of how late webhooks' events are.
WEBHOOK_LAG: Final = Lag()


class Duty(NamedTuple):
    """What is done again and again on every machine that works on jobs: it must bear company."""

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
    # Goes on until something is wrong with the database.
    Duty("alert notifications", 1.0, alert_notifications.notify),
    Duty("outbox", 0.5, _read_outbox),
    Duty("counts of usage", 5.0, _fold_usage_counts),
    # As the notifications.
    Duty("webhook deliveries", 1.0, webhooks.deliver),
    Duty("dead letters of webhooks", 1.0, webhooks.mark_dead_letters),
    Duty("notices to the portal", 2.0, portal_notices.send_due),
    Duty("webhooks' lag", 5.0, WEBHOOK_LAG.measure),
    # As the notifications.
    Duty("SIEM forwarding", 1.0, siem.forward),
    Duty("SIEM backlog", 10.0, SIEM_BACKLOG.measure),
)

_CONCURRENCY: Final = 8
_RETRY_SECONDS: Final = 2.0


async def work(tools: Tools) -> None:
    """Until it is cancelled; jobs in progress then have ten seconds. A dead database is waited for."""
    # It repeats itself at every try to connect; that the database is away is said once, below.
    logging.getLogger("psycopg.pool").setLevel("CRITICAL")
    logging.getLogger("procrastinate").setLevel("WARNING")
    async with asyncio.TaskGroup() as group:
        group.create_task(_jobs(tools))
        for duty in DUTIES:
            group.create_task(_repeat(duty, tools))


async def _jobs(tools: Tools) -> None:
    jobs.app.import_paths = MODULES
    connector = PsycopgConnector(
        conninfo=tools.database.url,
        configure=partial(roles.become_async, role=SERVICE_ROLE),
        min_size=1,
        max_size=4,
        # For a connection. A worker that ends says so in the database, and waits that long for one that is gone.
        timeout=10.0,
        kwargs=roles.parameters(tools.database.url, connect_timeout=5, application_name="gatehouse jobs"),
    )
    told = False
    with jobs.app.replace_connector(connector):
        while wanted():
            try:
                async with jobs.app.open_async():
                    told = False
                    await jobs.app.run_worker_async(
                        concurrency=_CONCURRENCY,
                        install_signal_handlers=False,
                        shutdown_graceful_timeout=10,
                        delete_jobs="successful",
                        additional_context=jobs.context(tools),
                    )
                reason = "worker ended"
            except Exception as error:
                reason = type(error).__name__
            if not told:
                log.warning("jobs.interrupted", reason=reason)
                told = True
            await asyncio.sleep(_RETRY_SECONDS)


async def _repeat(duty: Duty, tools: Tools) -> None:
    told = False
    while wanted():
        try:
            await duty.work(tools)
            told = False
        except Exception as error:
            if not told:
                log.warning("duty.failed", duty=duty.name, reason=f"{type(error).__name__}: {error}"[:300])
                told = True
        await asyncio.sleep(duty.seconds)
