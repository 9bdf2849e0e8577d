"""Rows and queries of policy rules."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

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


async def all_policies(session: AsyncSession) -> Sequence[PolicyRow]:
    """Return the tenant's rules in the order of evaluation."""
    order = (PolicyRow.priority, PolicyRow.created_at, PolicyRow.id)
    return (await session.scalars(select(PolicyRow).order_by(*order))).all()


async def count_policies(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(PolicyRow))).scalar_one()
