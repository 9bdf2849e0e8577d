"""Reads the tools of all servers again at an interval. Thus a changed or new tool is quarantined without a request of
an administrator (docs/mcp.md).

Only `refresh` reads servers with users' accounts, which need a person's token, and servers over stdio, which other
processes of the host run.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog
from sqlalchemy import BigInteger, Text, cast, func, select

from gatehouse.engine.mcp.credentials import UpstreamCredentials
from gatehouse.engine.mcp.discovery import discover
from gatehouse.engine.mcp.upstream import UpstreamFailed
from gatehouse.engine.ports import Secrets
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.outbound import Outbound
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.ports import SealedSecrets
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.platform.mcp.tools.refreshing import store_discovered
from gatehouse.platform.mcp.tools.table import find_server
from gatehouse.platform.organization.tenants.table import TenantRecord

log = structlog.get_logger(__name__)

#: Each server is read once in this number of minutes, in the minute that its id determines.
INTERVAL_MINUTES: Final = 15
#: Maximum number of servers that are read in one minute, and of those of one organization.
_MAX_SERVERS: Final = 500
_MAX_SERVERS_OF_ORGANIZATION: Final = 20
_MAX_CONCURRENT: Final = 16
_MAX_SECONDS_PER_SERVER: Final = 20.0
_MAX_RUN_SECONDS: Final = 50.0


class _ReadingPorts(msgspec.Struct, frozen=True):
    """The ports of a reader without accounts of users and without processes."""

    outbound: Outbound
    secrets: Secrets
    stdio: None = None
    user_tokens: None = None


@JOBS.scheduled("mcp.refresh_tools", every_seconds=60)
async def refresh_due(tools: Tools) -> None:
    """Read the tools of the servers whose minute it is."""
    await refresh_minute(tools, int(time.time() // 60) % INTERVAL_MINUTES)


async def refresh_minute(tools: Tools, minute: int) -> None:
    """Read the tools of the servers of a minute of the interval."""
    reader = _Reader(tools)
    try:
        async with asyncio.timeout(_MAX_RUN_SECONDS):
            await asyncio.gather(*(reader.read(server) for server in await _servers(tools, minute)))
    except TimeoutError:
        log.warning("mcp_tools.not_all_read", seconds=_MAX_RUN_SECONDS)


async def _servers(tools: Tools, minute: int) -> Sequence[McpServerRow]:
    number = func.hashtext(cast(McpServerRow.id, Text)).cast(BigInteger) + 2**31
    # The order is random, so that servers that fail do not keep others from being read.
    place = func.row_number().over(partition_by=McpServerRow.tenant_id, order_by=func.random())
    due = (
        select(McpServerRow.id, place.label("place"))
        .join(TenantRecord, TenantRecord.id == McpServerRow.tenant_id)
        .where(
            TenantRecord.deleted_at.is_(None),
            McpServerRow.enabled,
            McpServerRow.switched_off_at.is_(None),
            McpServerRow.revision.is_not(None),
            McpServerRow.url.is_not(None),
            McpServerRow.user_oauth.is_(None),
            number % INTERVAL_MINUTES == minute,
        )
        .subquery()
    )
    query = (
        select(McpServerRow)
        .join(due, due.c.id == McpServerRow.id)
        .where(due.c.place <= _MAX_SERVERS_OF_ORGANIZATION)
        .order_by(due.c.place, func.random())
        .limit(_MAX_SERVERS)
    )
    async with tools.database.service() as session:
        return (await session.scalars(query)).all()


class _Reader:
    """Reads the tools of servers, a limited number at once."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._ports = _ReadingPorts(tools.outbound, SealedSecrets(tools.sealer))
        self._credentials = UpstreamCredentials()
        self._turns = asyncio.Semaphore(_MAX_CONCURRENT)

    async def read(self, server: McpServerRow) -> None:
        """Read and store the tools of a server. A failure is logged, and the stored definitions stay in use."""
        async with self._turns:
            try:
                async with asyncio.timeout(_MAX_SECONDS_PER_SERVER):
                    await self._read(server)
            except (UpstreamFailed, Refusal, TimeoutError) as failed:
                reason = failed.reason if isinstance(failed, UpstreamFailed) else type(failed).__name__
                log.info("mcp_tools.not_read", server_id=str(server.id), reason=reason)
            except Exception:
                log.exception("mcp_tools.fault", server_id=str(server.id))

    async def _read(self, server: McpServerRow) -> None:
        record = server.record
        discovered = await discover(self._credentials.target(self._ports, server.tenant_id, record, None))
        async with self._tools.database.tenant(server.tenant_id) as session:
            current = await find_server(session, server.id, lock=True)
            if current is None or not current.enabled or current.record != record:
                # The server was changed while its tools were read.
                return
            change = Change(session, None, tenant_id=server.tenant_id)
            await store_discovered(change, current, discovered)
            await change.commit()
