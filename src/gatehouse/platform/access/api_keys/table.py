"""API keys' rows and named queries."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import LargeBinary, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import TenantRow


class ApiKeyRow(TenantRow):
    __tablename__ = "api_keys"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID]
    key_prefix: Mapped[str]
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    description: Mapped[str]
    created_at: Mapped[datetime]
    last_used: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    is_enabled: Mapped[bool]
    scopes: Mapped[list[str] | None] = mapped_column(JSONB)


async def by_digest(session: AsyncSession, digest: bytes) -> ApiKeyRow | None:
    return (await session.scalars(select(ApiKeyRow).where(ApiKeyRow.digest == digest))).one_or_none()


async def all_keys(session: AsyncSession, *, user_id: UUID | None = None) -> Sequence[ApiKeyRow]:
    """The tenant's keys, or one user's, newest first."""
    query = select(ApiKeyRow).order_by(ApiKeyRow.created_at.desc(), ApiKeyRow.id.desc())
    if user_id is not None:
        query = query.where(ApiKeyRow.user_id == user_id)
    return (await session.scalars(query)).all()
