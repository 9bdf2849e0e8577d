"""Approvals' rows and named queries."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, counted
from gatehouse.foundation.storage.rows import TenantRow


class ApprovalRow(TenantRow):
    """`node` is the worker that holds the request."""

    __tablename__ = "approvals"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    request_id: Mapped[str]
    user_id: Mapped[UUID | None]
    client_id: Mapped[UUID | None]
    reason: Mapped[str]
    rule_id: Mapped[str | None]
    rule_name: Mapped[str | None]
    entity_types: Mapped[list[str]]
    direction: Mapped[str]
    model: Mapped[str | None]
    status: Mapped[str]
    node: Mapped[UUID]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[str | None]
    decision_reason: Mapped[str | None]


async def page_of_approvals(
    session: AsyncSession, window: Window, status: str | None
) -> tuple[Sequence[ApprovalRow], int]:
    """The newest first, and how many there are in all."""
    query = select(ApprovalRow)
    if status is not None:
        query = query.where(ApprovalRow.status == status)
    total = (await session.execute(counted(query))).scalar_one()
    ordered = query.order_by(ApprovalRow.created_at.desc(), ApprovalRow.id.desc())
    return (await session.scalars(window.apply(ordered))).all(), total
