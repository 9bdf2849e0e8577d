"""Approvals' rows and named queries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, counted
from gatehouse.foundation.storage.rows import TenantRow

_MADE_BY: Final = text("SELECT created_by FROM oauth_clients WHERE client_id = :client")
_KEYS_MADE_BY: Final = text("SELECT DISTINCT created_by FROM api_keys WHERE user_id = :user AND created_by IS NOT NULL")


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


async def made_by(session: AsyncSession, client_id: UUID) -> UUID | None:
    """The user who made an OAuth client, if that is known."""
    made: UUID | None = (await session.execute(_MADE_BY, {"client": client_id})).scalar_one_or_none()
    return made


async def makers_of_keys(session: AsyncSession, user_id: UUID) -> set[UUID]:
    """Who made an API key of this user: of a service account, the people who can call in its name."""
    return set((await session.execute(_KEYS_MADE_BY, {"user": user_id})).scalars())


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
