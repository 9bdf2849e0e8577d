"""The table of API keys and its named queries."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias, cast
from uuid import UUID

from sqlalchemy import LargeBinary, Select, func, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import count_query
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


#: A query whose rows are a key and whether its user is active.
KeyListQuery: TypeAlias = Select[Any]


def list_query(*, user_id: UUID | None = None, enabled: bool | None = None) -> KeyListQuery:
    """Return the query of the tenant's keys, newest first. A row is a key and whether its user is active."""
    query = select(ApiKeyRow, UserRow.is_active).join(UserRow, UserRow.id == ApiKeyRow.user_id)
    if user_id is not None:
        query = query.where(ApiKeyRow.user_id == user_id)
    if enabled is not None:
        query = query.where(ApiKeyRow.is_enabled.is_(enabled))
    # The list helpers are typed for rows of one entity.
    return cast("KeyListQuery", query.order_by(ApiKeyRow.created_at.desc(), ApiKeyRow.id.desc()))


async def rows(session: AsyncSession, query: KeyListQuery) -> Sequence[tuple[ApiKeyRow, bool]]:
    result: Iterable[Any] = await session.execute(query)
    return [(key, active) for key, active in result]


async def count_keys(session: AsyncSession, query: KeyListQuery) -> int:
    return (await session.execute(count_query(query))).scalar_one()


async def count_keys_of_user(session: AsyncSession, user_id: UUID) -> int:
    query = select(func.count()).select_from(ApiKeyRow).where(ApiKeyRow.user_id == user_id)
    return (await session.execute(query)).scalar_one()


async def is_user_active(session: AsyncSession, user_id: UUID) -> bool:
    return (await session.execute(select(UserRow.is_active).where(UserRow.id == user_id))).scalar_one()
