"""The parts of one process. They are created and started in order, and stopped in reverse order. Routes read them from
`TheHost`."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Annotated, Final

import structlog
from fastapi import Depends, Request
from sqlalchemy import text

from gatehouse.administration.duties import Duty, repeat_all
from gatehouse.administration.job_worker import JobWorker
from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.shared import RedisCounters
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import cancel_all, is_running
from gatehouse.portal.installation import PortalInstallation, admin_keys
from gatehouse.portal.jobs import JOBS, JobContext
from gatehouse.portal.keys.authorities import Authorities
from gatehouse.portal.keys.signing import Keyring
from gatehouse.portal.metrics import PortalMetrics
from gatehouse.portal.migrations import SCHEMA
from gatehouse.portal.platform_link.client import PlatformClient
from gatehouse.portal.platform_link.openid_provider import SignInProvider
from gatehouse.portal.platform_link.platform_keys import PlatformKeys
from gatehouse.portal.rows import OrgSession
from gatehouse.portal.status_cache import TokenStatusCache

log = structlog.get_logger(__name__)

#: Seconds between two checks of the database.
_CHECK_INTERVAL_SECONDS: Final = 1.0
#: Seconds without a response after which the database is treated as unavailable.
_UNAVAILABLE_SECONDS: Final = 5.0
#: The local counters are purged after this number of checks.
_CHECKS_PER_PURGE: Final = 60
_MAX_CONCURRENT_JOBS: Final = 4
_COUNT_WAITING_JOBS: Final = text("SELECT count(*) FROM jobs WHERE status IN ('queued', 'running')")


class PortalHost:
    def __init__(self, installed: PortalInstallation, clock: Clock = SYSTEM_CLOCK) -> None:
        settings = self.settings = installed.settings
        self.admin_keys = admin_keys(settings)
        self.clock = clock
        self.database = Database(installed.url, schema=SCHEMA, sessions=OrgSession)
        self.sealer = Sealer(installed.master_keys.keys, installed.master_keys.current)
        self.keys = Keyring(self.database, self.sealer, clock, issuer=settings.issuer)
        self.token_statuses = TokenStatusCache(self.database)
        self._local = MemoryCounters(clock)
        self.counters = RedisCounters(settings.redis_url, self._local) if settings.redis_url else self._local
        self.outbound: Outbound = AiohttpOutbound(100, guard=EgressGuard(settings.egress_allowlist))
        self.platform = PlatformClient(settings, self.outbound)
        self.platform_keys = PlatformKeys(settings, self.outbound, clock)
        self.provider = SignInProvider(settings, self.platform, self.platform_keys)
        self.authorities = Authorities(self.database, self.sealer)
        self.metrics = PortalMetrics(settings.home / "metrics")
        self.job_context = JobContext(
            settings=settings, database=self.database, platform=self.platform, metrics=self.metrics
        )
        self.jobs = JobWorker(
            JOBS, self.job_context, self.database, slots=_MAX_CONCURRENT_JOBS, results=self.metrics.jobs
        )
        self.failing: str | None = "starting"
        self._waiting_jobs = 0
        self._parts = contextlib.AsyncExitStack()

    async def start(self, duties: Sequence[Duty[JobContext]]) -> None:
        """Starts the parts. If one of them raises an error, stops the parts that have been started and raises the
        error."""
        async with contextlib.AsyncExitStack() as parts:
            parts.push_async_callback(self.database.close)
            self.metrics.pool_available.read(self.database.available_connections)
            self.metrics.jobs_waiting.read(lambda: self._waiting_jobs)
            self.metrics.exporter.start()
            parts.push_async_callback(self.metrics.exporter.stop)
            if isinstance(self.counters, RedisCounters):
                parts.push_async_callback(self.counters.close)
                await self.counters.start()
            parts.push_async_callback(self.outbound.close)
            checking = asyncio.create_task(self._check_database(), name="database check")
            parts.push_async_callback(cancel_all, checking)
            parts.push_async_callback(cancel_all, asyncio.create_task(self.jobs.run(), name="jobs"))
            repeating = asyncio.create_task(repeat_all(duties, self.job_context), name="duties")
            parts.push_async_callback(cancel_all, repeating)
            if not self.platform.configured:
                log.warning(
                    "platform.not_configured", reason="PLATFORM_URL is not set: organizations are not provisioned"
                )
            self._parts = parts.pop_all()

    async def stop(self) -> None:
        """Stops the parts in reverse order of their start."""
        await self._parts.aclose()

    async def _check_database(self) -> None:
        """Checks the database periodically and updates `failing`. The readiness probe reads `failing`, so it does not
        wait for a slow database."""
        loop = asyncio.get_running_loop()
        answered_at, checks = loop.time(), 0
        while is_running():
            try:
                async with asyncio.timeout(_UNAVAILABLE_SECONDS):
                    async with self.database.service() as session:
                        self._waiting_jobs = (await session.execute(_COUNT_WAITING_JOBS)).scalar_one()
                answered_at, self.failing = loop.time(), None
            except Exception as error:
                if loop.time() - answered_at > _UNAVAILABLE_SECONDS or self.failing:
                    if self.failing != "database":
                        log.warning("database.away", reason=type(error).__name__)
                    self.failing = "database"
            checks += 1
            if checks % _CHECKS_PER_PURGE == 0:
                self._local.purge()
            await asyncio.sleep(_CHECK_INTERVAL_SECONDS)


async def _host(request: Request) -> PortalHost:
    host: PortalHost = request.app.state.host
    return host


TheHost = Annotated[PortalHost, Depends(_host)]
