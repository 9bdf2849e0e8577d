"""Rows and queries of approvals."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, count_query, sorted_by
from gatehouse.foundation.storage.rows import TenantRow

_CLIENT_CREATOR: Final = text("SELECT created_by FROM oauth_clients WHERE client_id = :client")
_KEY_CREATORS: Final = text("SELECT DISTINCT created_by FROM api_keys WHERE user_id = :user AND created_by IS NOT NULL")


class ApprovalRow(TenantRow):
    """An approval. `node` is the worker that holds the request."""

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


async def creator_of_client(session: AsyncSession, client_id: UUID) -> UUID | None:
    """Return the user who created an OAuth client, or None if no user is recorded."""
    creator: UUID | None = (await session.execute(_CLIENT_CREATOR, {"client": client_id})).scalar_one_or_none()
    return creator


async def creators_of_keys(session: AsyncSession, user_id: UUID) -> set[UUID]:
    """Return the users who created API keys of this user. The creator of a service account's key can call in the
    account's name."""
    return set((await session.execute(_KEY_CREATORS, {"user": user_id})).scalars())


async def page_of_approvals(
    session: AsyncSession, window: Window, status: str | None, sort: str
) -> tuple[Sequence[ApprovalRow], int]:
    """Return a page of approvals and the total count."""
    query = select(ApprovalRow)
    if status is not None:
        query = query.where(ApprovalRow.status == status)
    total = (await session.execute(count_query(query))).scalar_one()
    columns = {"created_at": ApprovalRow.created_at, "expires_at": ApprovalRow.expires_at}
    ordered = sorted_by(query, sort, columns, unique=ApprovalRow.id)
    return (await session.scalars(window.apply(ordered))).all(), total
