"""Rows and queries of tools."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, Text, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import containing
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.policy.mcp import ToolStatus


class McpToolRow(TenantRow):
    """A tool. Its definitions are the JSON texts that the hashes are computed from."""

    __tablename__ = "mcp_tools"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    server_id: Mapped[UUID]
    name: Mapped[str]
    status: Mapped[ToolStatus] = mapped_column(Text())
    definition: Mapped[str]
    hash: Mapped[str]
    approved_definition: Mapped[str | None]
    approved_hash: Mapped[str | None]
    approved_at: Mapped[datetime | None]
    approval_required: Mapped[bool]
    missing_since: Mapped[datetime | None]
    switched_off_at: Mapped[datetime | None]
    switched_off_reason: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


def by_name(server_id: UUID, status: ToolStatus | None) -> Select[McpToolRow]:
    """Return the query for the tools of a server, or for those with a status."""
    query = select(McpToolRow).where(McpToolRow.server_id == server_id).order_by(McpToolRow.name)
    return query if status is None else query.where(McpToolRow.status == status)


def by_server(server_id: UUID | None, status: ToolStatus | None, search: str | None) -> Select[McpToolRow]:
    """Return the query for the tools of all servers, sorted by the names of server and tool. `search`
    is a part of the tool's name."""
    query = (
        select(McpToolRow)
        .join(McpServerRow, McpServerRow.id == McpToolRow.server_id)
        .order_by(McpServerRow.name, McpToolRow.name)
    )
    if server_id is not None:
        query = query.where(McpToolRow.server_id == server_id)
    if status is not None:
        query = query.where(McpToolRow.status == status)
    return containing(query, search, McpToolRow.name)


async def server_names(session: AsyncSession) -> dict[UUID, str]:
    """Return the names of the organization's servers by their ids."""
    return {row.id: row.name for row in await session.execute(select(McpServerRow.id, McpServerRow.name))}


async def locked_tools(session: AsyncSession, server_id: UUID) -> Sequence[McpToolRow]:
    """Return all tools of a server, by name, and lock them until the end of the transaction."""
    return (await session.scalars(by_name(server_id, None).with_for_update())).all()


async def find_server(session: AsyncSession, server_id: UUID | None, *, lock: bool = False) -> McpServerRow | None:
    """Return a server, or None. With `lock`, lock it until the end of the transaction."""
    if server_id is None:
        return None
    query = select(McpServerRow).where(McpServerRow.id == server_id)
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()
