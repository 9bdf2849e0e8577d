"""Rows and queries of MCP servers."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, Text, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, column_property, mapped_column

from gatehouse.foundation.http.lists import containing
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.settings import EgressPolicy
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.policy.mcp import McpOAuthRecord, McpServerRecord, McpStdioRecord, McpUserOAuthRecord, ServerAccess


class McpServerRow(TenantRow):
    __tablename__ = "mcp_servers"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant_id: Mapped[TenantId] = mapped_column(index=False)
    name: Mapped[str]
    description: Mapped[str | None]
    #: None if the server is a process
    url: Mapped[str | None]
    stdio: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    sealed_environment: Mapped[str | None]
    enabled: Mapped[bool]
    access: Mapped[ServerAccess] = mapped_column(Text())
    timeout_ms: Mapped[int]
    header_name: Mapped[str | None]
    sealed_header: Mapped[str | None]
    oauth: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    user_oauth: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    #: the secret of the client in `oauth` or `user_oauth`
    sealed_client_secret: Mapped[str | None]
    revision: Mapped[str | None]
    server_info: Mapped[dict[str, Any]]
    faults: Mapped[list[str]]
    refreshed_at: Mapped[datetime | None]
    switched_off_at: Mapped[datetime | None]
    switched_off_reason: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    #: the organization's policy
    egress_policy: Mapped[EgressPolicy | None] = column_property(
        select(TenantRecord.egress_policy).where(TenantRecord.id == tenant_id).scalar_subquery()
    )

    @property
    def record(self) -> McpServerRecord:
        """The record of the server without its tools and rules. The revision is empty before the first refresh."""
        return McpServerRecord(
            id=self.id,
            name=self.name,
            url=self.url or "",
            revision=self.revision or "",
            access=self.access,
            timeout_ms=self.timeout_ms,
            sealed_header=self.sealed_header,
            oauth=oauth_record(self.oauth, self.sealed_client_secret),
            stdio=stdio_record(self.stdio, self.sealed_environment),
            user_oauth=user_oauth_record(self.user_oauth, self.sealed_client_secret),
            egress_policy=self.egress_policy,
        )


def oauth_record(oauth: dict[str, Any] | None, sealed_secret: str | None) -> McpOAuthRecord | None:
    """Return the gateway's OAuth client at a server from its columns."""
    return None if oauth is None or sealed_secret is None else McpOAuthRecord(**oauth, sealed_secret=sealed_secret)


def stdio_record(stdio: dict[str, Any] | None, sealed_environment: str | None) -> McpStdioRecord | None:
    """Return the command of a server from its columns."""
    return None if stdio is None else McpStdioRecord(stdio["command"], sealed_environment)


def user_oauth_record(oauth: dict[str, Any] | None, sealed_secret: str | None) -> McpUserOAuthRecord | None:
    """Return the gateway's OAuth client that acts for each user from its columns."""
    return None if oauth is None else McpUserOAuthRecord(**oauth, sealed_secret=sealed_secret)


_REMOVE_CONNECTIONS = text("DELETE FROM mcp_connections WHERE server_id = :server RETURNING id")
_REMOVE_CONSENTS = text("DELETE FROM mcp_consents WHERE server_id = :server")
_QUARANTINE = text(
    "UPDATE mcp_tools SET status = 'quarantined', updated_at = now() WHERE server_id = :server RETURNING id"
)
_TOOL_IDS = text("SELECT id FROM mcp_tools WHERE server_id = :server")


def by_name(search: str | None = None) -> Select[McpServerRow]:
    """Return the query for the organization's servers. `search` is a part of the name or the description."""
    query = select(McpServerRow).order_by(McpServerRow.name)
    return containing(query, search, McpServerRow.name, McpServerRow.description)


async def count_mcp_servers(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(McpServerRow))).scalar_one()


async def quarantine_tools(session: AsyncSession, server_id: UUID) -> list[UUID]:
    """Put all tools of a server into quarantine. Returns their ids."""
    return list((await session.execute(_QUARANTINE, {"server": server_id})).scalars())


async def remove_connections(session: AsyncSession, server_id: UUID) -> int:
    """Remove the tokens of all users for a server, and the consents that they have begun. Returns the number of
    connections."""
    await session.execute(_REMOVE_CONSENTS, {"server": server_id})
    return len((await session.execute(_REMOVE_CONNECTIONS, {"server": server_id})).all())


async def tool_ids(session: AsyncSession, server_id: UUID) -> list[UUID]:
    return list((await session.execute(_TOOL_IDS, {"server": server_id})).scalars())
