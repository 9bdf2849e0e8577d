"""Content filters' rows and named queries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.groups.table import GroupRow

# One organization's filters are counted and added to by one change at a time.
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('content_filters:' || :tenant, 0))")


class ContentFilterRow(TenantRow):
    __tablename__ = "content_filters"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str | None]
    filter_type: Mapped[str]
    config: Mapped[dict[str, Any]]
    scope: Mapped[str]
    group_id: Mapped[UUID | None]
    enabled: Mapped[bool]
    priority: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


async def all_filters(session: AsyncSession) -> Sequence[ContentFilterRow]:
    """The tenant's, in the order in which they are looked at."""
    order = (ContentFilterRow.priority, ContentFilterRow.created_at, ContentFilterRow.id)
    return (await session.scalars(select(ContentFilterRow).order_by(*order))).all()


async def count_filters(session: AsyncSession) -> tuple[int, int]:
    """Filters, and keywords in all of them."""
    await session.execute(_LOCK, {"tenant": str(session.info["tenant_id"])})
    keywords = func.coalesce(func.jsonb_array_length(ContentFilterRow.config["keywords"]), 0)
    row = (await session.execute(select(func.count(), func.coalesce(func.sum(keywords), 0)))).one()
    return int(row[0]), int(row[1])


async def lock_group(session: AsyncSession, group_id: UUID) -> bool:
    """Whether there is such a group; then it is not removed meanwhile."""
    query = select(GroupRow.id).where(GroupRow.id == group_id).with_for_update(read=True, key_share=True)
    return (await session.scalars(query)).one_or_none() is not None
