"""Lists and removes connections."""

from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.foundation.http.lists import OffsetWindow, count_query
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.platform.changes.change import Change
from gatehouse.platform.mcp.connections import table
from gatehouse.platform.mcp.connections.errors import McpConnectionNotFound
from gatehouse.platform.mcp.connections.paths import page_url
from gatehouse.platform.mcp.connections.schemas import ConnectionStatus, McpConnection, OwnMcpConnection
from gatehouse.platform.mcp.connections.table import ConnectionRow
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.platform.request.ports import Host


async def own(session: AsyncSession, host: Host, caller: Caller, tenant_id: TenantId) -> list[OwnMcpConnection]:
    """Return the MCP servers that the caller may use and that need the caller's account, and all servers at which the
    caller has a connection, by name."""
    assert caller.user_id is not None
    policy = await host.ports.policies.current(tenant_id)
    rows = await table.connections_of_user(session, caller.user_id)
    usable = {
        server.record.id: server.record.name
        for server in policy.mcp_servers.values()
        if server.record.user_oauth is not None and next(server.permitted(caller), None) is not None
    }
    # The policy omits servers that are disabled or were never refreshed.
    names = usable | await table.names_of_servers(session, rows.keys() - usable.keys())
    return [
        _shown(rows.get(server_id), server_id, name, server_id in usable, host.settings.public_url)
        for server_id, name in sorted(names.items(), key=lambda item: item[1])
    ]


def _shown(
    row: ConnectionRow | None, server_id: UUID, name: str, is_available: bool, public_url: str | None
) -> OwnMcpConnection:
    return OwnMcpConnection(
        server_id=server_id,
        server=name,
        available=is_available,
        status="not_connected" if row is None else _status(row),
        scope=None if row is None else row.scope,
        connected_at=None if row is None else row.created_at,
        connect_url=page_url(public_url, name),
    )


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


async def remove_own(change: Change, server_id: UUID | None, user_id: UUID) -> None:
    """Remove a user's connection to a server. Raises `McpConnectionNotFound`."""
    row = None if server_id is None else await table.connection_of(change.session, server_id, user_id, lock=True)
    await _remove(change, row)


async def remove(change: Change, server_id: UUID | None, connection_id: UUID | None) -> None:
    """Remove a connection to this server. Raises `McpConnectionNotFound`."""
    row = await change.session.get(ConnectionRow, connection_id, with_for_update=True) if connection_id else None
    await _remove(change, None if row is None or row.server_id != server_id else row)


async def _remove(change: Change, row: ConnectionRow | None) -> None:
    """Remove a connection. After the response no worker sends the tokens. They are revoked in the background
    (`revocations`)."""
    server = None if row is None else await change.session.get(McpServerRow, row.server_id)
    if row is None or server is None:
        raise McpConnectionNotFound
    await change.session.delete(row)
    change.record("mcp_connection.deleted", "mcp_server", row.server_id, name=server.name, user_id=row.user_id)
    change.touch("mcp_connection", f"{row.server_id}/{row.user_id}", urgent=True)
