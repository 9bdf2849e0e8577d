"""One process's parts, made, started and stopped in order; routes find them by `TheHost`."""

import asyncio
import contextlib
from typing import Annotated, Final

import structlog
from fastapi import Depends, Request
from sqlalchemy import text

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.shared import RedisCounters
from gatehouse.foundation.egress import EgressGuard
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import cancelled, wanted
from gatehouse.portal.authorities import Authorities
from gatehouse.portal.installation import Installation, admin_keys
from gatehouse.portal.jobs import Tools, Worker
from gatehouse.portal.metrics import Figures
from gatehouse.portal.migrations import SCHEMA
from gatehouse.portal.platform import PlatformClient
from gatehouse.portal.platform_keys import PlatformKeys
from gatehouse.portal.provider import Provider
from gatehouse.portal.rows import OrgSession
from gatehouse.portal.signing import Keyring
from gatehouse.portal.standing import Standings
from gatehouse.portal.work import work

log = structlog.get_logger(__name__)

#: Seconds between looks at the database, and after which it counts as away.
_BEAT_SECONDS: Final = 1.0
_AWAY_SECONDS: Final = 5.0
_PURGE_BEATS: Final = 60
_WAITING: Final = text("SELECT count(*) FROM jobs WHERE status IN ('queued', 'running')")


class PortalHost:
    def __init__(self, installed: Installation, clock: Clock = SYSTEM_CLOCK) -> None:
        settings = self.settings = installed.settings
        self.admin_keys = admin_keys(settings)
        self.clock = clock
        self.database = Database(installed.url, schema=SCHEMA, sessions=OrgSession)
        self.sealer = Sealer(installed.master_keys.keys, installed.master_keys.current)
        self.keys = Keyring(self.database, self.sealer, clock, issuer=settings.issuer)
        self.standings = Standings(self.database)
        self._local = MemoryCounters(clock)
        self.counters = RedisCounters(settings.redis_url, self._local) if settings.redis_url else self._local
        self.outbound: Outbound = AiohttpOutbound(100, guard=EgressGuard(settings.egress_allowlist))
        self.platform = PlatformClient(settings, self.outbound)
        self.platform_keys = PlatformKeys(settings, self.outbound, clock)
        self.provider = Provider(settings, self.platform, self.platform_keys)
        self.authorities = Authorities(self.database, self.sealer)
        self.figures = Figures(settings.home / "metrics")
        self.tools = Tools(settings=settings, database=self.database, platform=self.platform, figures=self.figures)
        self.jobs = Worker(self.tools)
        self.failing: str | None = "starting"
        self._waiting = 0
        self._parts = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Raises what a part raises; what was started by then is stopped."""
        async with contextlib.AsyncExitStack() as parts:
            parts.push_async_callback(self.database.close)
            self.figures.pool_available.read(self.database.available_connections)
            self.figures.jobs_waiting.read(lambda: self._waiting)
            self.figures.metrics.start()
            parts.push_async_callback(self.figures.metrics.stop)
            if isinstance(self.counters, RedisCounters):
                parts.push_async_callback(self.counters.close)
                await self.counters.start()
            parts.push_async_callback(self.outbound.close)
            tasks = (
                asyncio.create_task(self._beat(), name="beat"),
                asyncio.create_task(work(self.tools, self.jobs), name="work"),
            )
            parts.push_async_callback(cancelled, *tasks)
            if not self.platform.configured:
                log.warning(
                    "platform.not_configured", reason="PLATFORM_URL is not set: organizations are not provisioned"
                )
            self._parts = parts.pop_all()

    async def stop(self) -> None:
        """In reverse order of the start."""
        await self._parts.aclose()

    async def _beat(self) -> None:
        """Whether the database answers: a probe asks this, and never waits for a slow one."""
        loop = asyncio.get_running_loop()
        answered_at, beats = loop.time(), 0
        while wanted():
            try:
                async with asyncio.timeout(_AWAY_SECONDS):
                    async with self.database.service() as session:
                        self._waiting = (await session.execute(_WAITING)).scalar_one()
                answered_at, self.failing = loop.time(), None
            except Exception as error:
                if loop.time() - answered_at > _AWAY_SECONDS or self.failing:
                    if self.failing != "database":
                        log.warning("database.away", reason=type(error).__name__)
                    self.failing = "database"
            beats += 1
            if beats % _PURGE_BEATS == 0:
                self._local.purge()
            await asyncio.sleep(_BEAT_SECONDS)


def _host(request: Request) -> PortalHost:
    host: PortalHost = request.app.state.host
    return host


TheHost = Annotated[PortalHost, Depends(_host)]
