"""Revokes the tokens of removed connections at their authorization servers (RFC 7009), as a job.

A trigger of the database queues the tokens of each connection that is removed or replaced, whoever removes it. A
request that fails is repeated with increasing pauses, at most `MAX_ATTEMPTS` times within about eight hours.
Organizations take turns, and the number of waiting rows of an organization is limited.
"""

import asyncio
import time
from typing import Any, Final, Literal

import msgspec
import structlog
from sqlalchemy import delete, select, text

from gatehouse.engine.providers.authentication.renewal import NotAvailable
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets.sealing import CannotOpen
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.changes.change import Change
from gatehouse.platform.mcp.connections.authorization_servers import AuthorizationServers, Revocation, client_secret
from gatehouse.platform.mcp.connections.table import ConnectionRow, RevocationRow, StoredTokens, tokens_context
from gatehouse.platform.mcp.servers.table import user_oauth_record
from gatehouse.policy.mcp import McpServerRecord

log = structlog.get_logger(__name__)

MAX_ATTEMPTS: Final = 11
_FIRST_PAUSE_SECONDS: Final = 30.0
_MAX_PAUSE_SECONDS: Final = 7_200.0
#: Maximum number of concurrent revocations, and of those of one organization.
_MAX_CONCURRENT: Final = 32
#: A run begins no further requests after this time, so that a slow server does not occupy a worker of jobs.
_MAX_RUN_SECONDS: Final = 60.0
_MAX_CONCURRENT_OF_ORGANIZATION: Final = 4

# The time of the next attempt is set before the request, so that a killed process does not repeat it at once.
_CLAIM: Final = text(
    "UPDATE mcp_revocations r SET attempts = r.attempts + 1,"
    " due_at = now() + make_interval(secs => least(:pause * 2.0 ^ least(r.attempts, 20), :max_pause))"
    " FROM tenants t WHERE t.id = r.tenant_id AND r.id IN (SELECT id FROM"
    " (SELECT id, due_at, row_number() OVER (PARTITION BY tenant_id ORDER BY due_at) AS place FROM mcp_revocations"
    " WHERE due_at <= now()) due WHERE place <= :share ORDER BY due_at LIMIT :most)"
    " RETURNING r.id, r.tenant_id, r.server_id, r.user_id, r.server, r.server_url, r.user_oauth,"
    " r.sealed_client_secret, r.revocation_url, r.sealed_tokens, r.replaced, r.attempts, t.egress_policy"
)
_BOUNDS: Final = {
    "pause": _FIRST_PAUSE_SECONDS, "max_pause": _MAX_PAUSE_SECONDS, "share": _MAX_CONCURRENT_OF_ORGANIZATION,
    "most": _MAX_CONCURRENT,
}  # fmt: skip


@JOBS.scheduled("mcp.revoke_tokens", every_seconds=10)
async def revoke_due(tools: Tools) -> None:
    """Send the requests that are due."""
    ends_at = time.monotonic() + _MAX_RUN_SECONDS
    while time.monotonic() < ends_at:
        async with tools.database.service() as session:
            due = (await session.execute(_CLAIM, _BOUNDS)).all()
            await session.commit()
        if not due:
            return
        await asyncio.gather(*(_revoke(tools, row) for row in due))


async def _revoke(tools: Tools, row: Any) -> None:
    try:
        result = await _result(tools, row)
    except Exception:
        log.exception("mcp_revocation.failed", server_id=str(row.server_id))
        result = "again"
    if result == "again" and row.attempts < MAX_ATTEMPTS:
        return
    async with tools.database.tenant(TenantId(row.tenant_id)) as session:
        change = Change(session, None, tenant_id=TenantId(row.tenant_id))
        await session.execute(delete(RevocationRow).where(RevocationRow.id == row.id))
        if result != "done":
            change.record(
                "mcp_connection.not_revoked", "mcp_server", row.server_id,
                outcome="failure", reason=result, name=row.server, user_id=row.user_id,
            )  # fmt: skip
        await change.commit()


async def _is_connected_again(tools: Tools, row: Any) -> bool:
    """Return whether the user has connected again since the connection was removed. Some authorization servers would
    end the new connection too. A user who replaces a connection is connected at the first attempt, so the tokens are
    sent once."""
    if row.replaced and row.attempts == 1:
        return False
    query = select(ConnectionRow.id).where(
        ConnectionRow.server_id == row.server_id, ConnectionRow.user_id == row.user_id,
        ConnectionRow.client_id == row.user_oauth["client_id"],
    )  # fmt: skip
    async with tools.database.tenant(TenantId(row.tenant_id)) as session:
        return await session.scalar(query) is not None


async def _result(tools: Tools, row: Any) -> Literal[Revocation, "connected_again"]:
    if await _is_connected_again(tools, row):
        return "connected_again"
    oauth = user_oauth_record(row.user_oauth, row.sealed_client_secret)
    assert oauth is not None
    server = McpServerRecord(
        id=row.server_id, name=row.server, url=row.server_url, revision="", user_oauth=oauth,
        egress_policy=row.egress_policy,
    )  # fmt: skip
    context = tokens_context(row.tenant_id, row.server_id, row.user_id)
    try:
        tokens = msgspec.json.decode(tools.sealer.open(row.sealed_tokens, context=context), type=StoredTokens)
        secret = client_secret(tools.sealer, TenantId(row.tenant_id), server, oauth)
    except (CannotOpen, NotAvailable):
        return "refused"
    servers = AuthorizationServers(tools.outbound, tools.receivers.guard)
    return await servers.revoke(server, oauth, secret, row.revocation_url, tokens)
