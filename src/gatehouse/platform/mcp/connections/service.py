"""Lists and removes connections."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.foundation.http.lists import OffsetWindow, count_query
from gatehouse.foundation.identity import Caller, Role, TenantId
from gatehouse.platform.access.users import table as users
from gatehouse.platform.changes.change import Change
from gatehouse.platform.mcp.connections import table
from gatehouse.platform.mcp.connections.errors import McpConnectionNotFound
from gatehouse.platform.mcp.connections.paths import page_url
from gatehouse.platform.mcp.connections.schemas import ConnectionStatus, McpConnection, OwnMcpConnection
from gatehouse.platform.mcp.connections.table import ConnectionRow
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.platform.request.ports import Host
from gatehouse.policy.mcp import McpServer


async def own(session: AsyncSession, host: Host, caller: Caller, tenant_id: TenantId) -> list[OwnMcpConnection]:
    """Return the MCP servers that the caller or one of the caller's API keys may use and that need the caller's
    account, and all servers at which the caller has a connection, by name. An account can be connected at those that
    are available (`consents.offer`)."""
    assert caller.user_id is not None
    policy = await host.ports.policies.current(tenant_id)
    rows = await table.connections_of_user(session, caller.user_id)
    callers = callers_of(caller, await users.key_ids(session, caller.user_id))
    states = {
        server.record.id: (server.record.name, True)
        for server in policy.mcp_servers.values()
        if server.record.user_oauth is not None and may_use(server, callers)
    }
    # The policy omits servers that are disabled or were never refreshed. Administrators may connect at all others.
    for server_id, (name, enabled) in (await table.states_of_servers(session, rows.keys() - states.keys())).items():
        states[server_id] = name, enabled and caller.role is Role.ADMIN
    return [
        _shown(rows.get(server_id), server_id, name, is_available, host.settings.public_url)
        for server_id, (name, is_available) in sorted(states.items(), key=lambda item: item[1])
    ]


def callers_of(caller: Caller, key_ids: Iterable[UUID]) -> list[Caller]:
    """Return the caller, and the caller with each of these API keys. A rule may allow only a key."""
    return [caller, *(msgspec.structs.replace(caller, api_key_id=key_id) for key_id in key_ids)]


def may_use(server: McpServer, callers: Iterable[Caller]) -> bool:
    """Return whether one of the callers may call a tool of the server."""
    return any(next(server.permitted(caller), None) is not None for caller in callers)


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
