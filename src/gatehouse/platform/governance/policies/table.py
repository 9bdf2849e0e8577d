"""Rows and queries of policy rules."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import containing, sorted_by
from gatehouse.foundation.storage.rows import TenantRow


class PolicyRow(TenantRow):
    __tablename__ = "policies"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str | None]
    priority: Mapped[int]
    enabled: Mapped[bool]
    condition: Mapped[str]
    action: Mapped[str]
    route_to: Mapped[str | None]
    terminal: Mapped[bool]
    message: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


def list_query(*, search: str | None, enabled: bool | None, action: str | None, sort: str) -> Select[PolicyRow]:
    """Return the query of rules by part of the name or the description, state and action."""
    query = containing(select(PolicyRow), search, PolicyRow.name, PolicyRow.description)
    if enabled is not None:
        query = query.where(PolicyRow.enabled.is_(enabled))
    if action is not None:
        query = query.where(PolicyRow.action == action)
    columns = {
        "priority": (PolicyRow.priority, PolicyRow.created_at),
        "name": PolicyRow.name,
        "created_at": PolicyRow.created_at,
    }
    return sorted_by(query, sort, columns, unique=PolicyRow.id)


async def count_policies(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(PolicyRow))).scalar_one()
