"""The table of access rules of MCP servers, and named queries."""

from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Select, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.policy.mcp import SubjectType


class AccessRuleRow(TenantRow):
    __tablename__ = "mcp_access_rules"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    server_id: Mapped[UUID]
    subject_type: Mapped[str]
    subject_id: Mapped[UUID]
    tool: Mapped[str | None]
    access_type: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


#: For each type of subject: a query that has a row if the subject exists. Row-level security limits it to the tenant.
_SUBJECTS: Final = {
    "group": text("SELECT 1 FROM groups WHERE id = :id"),
    "user": text("SELECT 1 FROM users WHERE id = :id"),
    "api_key": text("SELECT 1 FROM api_keys WHERE id = :id"),
    "oauth_client": text("SELECT 1 FROM oauth_clients WHERE client_id = :id"),
}
_TOOL = text("SELECT 1 FROM mcp_tools WHERE server_id = :server AND name = :name")


def oldest_first(server_id: UUID) -> Select[AccessRuleRow]:
    return (
        select(AccessRuleRow)
        .where(AccessRuleRow.server_id == server_id)
        .order_by(AccessRuleRow.created_at, AccessRuleRow.id)
    )


async def count_access_rules(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(AccessRuleRow))).scalar_one()


async def subject_exists(session: AsyncSession, subject_type: SubjectType, subject_id: UUID) -> bool:
    return (await session.execute(_SUBJECTS[subject_type], {"id": subject_id})).first() is not None


async def tool_exists(session: AsyncSession, server_id: UUID, name: str) -> bool:
    return (await session.execute(_TOOL, {"server": server_id, "name": name})).first() is not None
