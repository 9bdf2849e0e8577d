"""Lists and removes connections."""

from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.providers.authentication.renewal import NotAvailable
from gatehouse.foundation import emails
from gatehouse.foundation.http.lists import OffsetWindow, count_query
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.secrets.sealing import CannotOpen
from gatehouse.platform.mcp.connections import table
from gatehouse.platform.mcp.connections.authorization_servers import AuthorizationServers, client_secret
from gatehouse.platform.mcp.connections.errors import McpConnectionNotFound
from gatehouse.platform.mcp.connections.paths import page_url
from gatehouse.platform.mcp.connections.schemas import ConnectionStatus, McpConnection, OwnMcpConnection
from gatehouse.platform.mcp.connections.table import ConnectionRow, StoredTokens, tokens_context
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.platform.request.ports import Host
from gatehouse.policy.mcp import McpServerRecord


async def own(session: AsyncSession, host: Host, caller: Caller, tenant_id: TenantId) -> list[OwnMcpConnection]:
    """Return the MCP servers that the caller may use and that need the caller's account, by name."""
    assert caller.user_id is not None
    policy = await host.ports.policies.current(tenant_id)
    rows = await table.connections_of_user(session, caller.user_id)
    shown = []
    for server in policy.mcp_servers.values():
        record, row = server.record, rows.get(server.record.id)
        if record.user_oauth is None or (row is None and next(server.permitted(caller), None) is None):
            continue
        shown.append(
            OwnMcpConnection(
                server_id=record.id,
                server=record.name,
                status="not_connected" if row is None else _status(row),
                scope=None if row is None else row.scope,
                connected_at=None if row is None else row.created_at,
                connect_url=page_url(host.settings.public_url, record.name),
            )
        )
    return shown


async def list_page(session: AsyncSession, server_id: UUID, window: OffsetWindow) -> dict[str, Any]:
    query = table.connections_of_server(server_id)
    total = (await session.execute(count_query(query))).scalar_one()
    shown = [
        McpConnection(
            id=row.id, server_id=row.server_id, user_id=row.user_id, email=emails.visible_address(row.email) or "",
            status=_status(row), scope=row.scope, connected_at=row.created_at, expires_at=row.expires_at,
        )
        for row in await session.scalars(window.apply(query))
    ]  # fmt: skip
    return window.envelope("mcp_connections", shown, total)


def _status(row: ConnectionRow) -> ConnectionStatus:
    return "ended" if row.sealed_tokens is None else "connected"


async def remove_own(transactions: SplitTransactions, host: Host, server_id: UUID | None, user_id: UUID) -> None:
    """Remove a user's connection to a server. Raises `McpConnectionNotFound`."""
    async with transactions.reading() as session:
        row = None if server_id is None else await table.connection_of(session, server_id, user_id)
    await remove(transactions, host, None if row is None else row.id)


async def remove(
    transactions: SplitTransactions, host: Host, connection_id: UUID | None, server_id: UUID | None = None
) -> None:
    """Remove a connection, and then revoke its tokens in the background. After the response no worker sends them. If
    `server_id` is set, the connection must be to this server. Raises `McpConnectionNotFound`."""
    async with transactions.changing() as change:
        row = await change.session.get(ConnectionRow, connection_id, with_for_update=True) if connection_id else None
        if row is None or (server_id is not None and row.server_id != server_id):
            raise McpConnectionNotFound
        server = await change.session.get(McpServerRow, row.server_id)
        assert server is not None
        await change.session.delete(row)
        change.record("mcp_connection.deleted", "mcp_server", row.server_id, name=server.name, user_id=row.user_id)
        change.touch("mcp_connection", f"{row.server_id}/{row.user_id}", urgent=True)
        record = server.record
    await host.later.run(revoke(host, row, record))


async def revoke(host: Host, row: ConnectionRow, server: McpServerRecord) -> None:
    """Revoke the tokens of a removed connection, if the authorization server supports it."""
    oauth = server.user_oauth
    if row.revocation_url is None or row.sealed_tokens is None or oauth is None or oauth.client_id != row.client_id:
        return
    context = tokens_context(row.tenant_id, row.server_id, row.user_id)
    try:
        tokens = msgspec.json.decode(host.sealer.open(row.sealed_tokens, context=context), type=StoredTokens)
        secret = client_secret(host.sealer, row.tenant_id, server, oauth)
    except (CannotOpen, NotAvailable):
        return
    await AuthorizationServers(host.outbound, host.receivers.guard).revoke(
        server, oauth, secret, row.revocation_url, tokens
    )
