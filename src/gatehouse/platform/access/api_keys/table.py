"""API keys' rows and named queries."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias, cast
from uuid import UUID

from sqlalchemy import LargeBinary, Select, func, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import counted
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.users.table import UserRow


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
    disabled_by: Mapped[str | None]
    created_by: Mapped[UUID | None]


async def by_digest(session: AsyncSession, digest: bytes) -> ApiKeyRow | None:
    return (await session.scalars(select(ApiKeyRow).where(ApiKeyRow.digest == digest))).one_or_none()


#: of a key, and whether its user is active
Listing: TypeAlias = Select[Any]


def listing(*, user_id: UUID | None = None, enabled: bool | None = None) -> Listing:
    """The tenant's keys with whether their user is active, newest first."""
    query = select(ApiKeyRow, UserRow.is_active).join(UserRow, UserRow.id == ApiKeyRow.user_id)
    if user_id is not None:
        query = query.where(ApiKeyRow.user_id == user_id)
    if enabled is not None:
        query = query.where(ApiKeyRow.is_enabled.is_(enabled))
    # Lists are typed for one entity a row.
    return cast("Listing", query.order_by(ApiKeyRow.created_at.desc(), ApiKeyRow.id.desc()))


async def rows(session: AsyncSession, query: Listing) -> Sequence[tuple[ApiKeyRow, bool]]:
    result: Iterable[Any] = await session.execute(query)
    return [(key, active) for key, active in result]


async def total(session: AsyncSession, query: Listing) -> int:
    return (await session.execute(counted(query))).scalar_one()


async def count_of_user(session: AsyncSession, user_id: UUID) -> int:
    query = select(func.count()).select_from(ApiKeyRow).where(ApiKeyRow.user_id == user_id)
    return (await session.execute(query)).scalar_one()


async def user_active(session: AsyncSession, user_id: UUID) -> bool:
    return (await session.execute(select(UserRow.is_active).where(UserRow.id == user_id))).scalar_one()
