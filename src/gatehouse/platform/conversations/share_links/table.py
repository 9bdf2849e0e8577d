"""Rows and queries of share links."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import LargeBinary, Select, func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.storage.rows import TenantRow

#: Finds an active link by its digest. It searches all tenants, because the reader of a link has only its token.
_ACTIVE_LINK = text(
    "SELECT s.id, s.tenant_id, s.conversation_id FROM share_links s"
    " JOIN conversations c ON c.id = s.conversation_id"
    " JOIN users u ON u.id = c.user_id AND u.is_active"
    " JOIN tenants t ON t.id = s.tenant_id AND t.deleted_at IS NULL"
    " WHERE s.digest = :digest AND NOT s.revoked"
)


class ShareLinkRow(TenantRow):
    __tablename__ = "share_links"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    conversation_id: Mapped[UUID]
    sealed_token: Mapped[str]
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    revoked: Mapped[bool]
    created_at: Mapped[datetime]


class ActiveLink(NamedTuple):
    link_id: UUID
    tenant_id: TenantId
    conversation_id: UUID


async def find_active(session: AsyncSession, digest: bytes) -> ActiveLink | None:
    """Return the active link with this digest, or None. The session must have the service role."""
    row = (await session.execute(_ACTIVE_LINK, {"digest": digest})).first()
    return None if row is None else ActiveLink(row.id, TenantId(row.tenant_id), row.conversation_id)


def of_conversation(conversation_id: UUID, revoked: bool | None) -> Select[ShareLinkRow]:
    """Return the query of a conversation's links, oldest first. `revoked` selects the revoked or the valid ones."""
    query = select(ShareLinkRow).where(ShareLinkRow.conversation_id == conversation_id)
    if revoked is not None:
        query = query.where(ShareLinkRow.revoked == revoked)
    return query.order_by(ShareLinkRow.created_at, ShareLinkRow.id)


async def for_change(session: AsyncSession, conversation_id: UUID, id_or_token: UUID) -> ShareLinkRow | None:
    """Return the conversation's link with this id or token, and lock its row."""
    matches = or_(ShareLinkRow.id == id_or_token, ShareLinkRow.digest == tokens.digest(str(id_or_token)))
    query = select(ShareLinkRow).where(ShareLinkRow.conversation_id == conversation_id, matches)
    return (await session.scalars(query.with_for_update())).one_or_none()


async def count(session: AsyncSession, conversation_id: UUID) -> int:
    query = select(func.count()).select_from(ShareLinkRow).where(ShareLinkRow.conversation_id == conversation_id)
    return await session.scalar(query) or 0
