"""Rows and queries of content filters."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import containing, sorted_by
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.groups.table import GroupRow


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


def list_query(
    *, search: str | None, enabled: bool | None, filter_type: str | None, sort: str
) -> Select[ContentFilterRow]:
    """Return the query of filters by part of the name or the description, state and type."""
    query = containing(select(ContentFilterRow), search, ContentFilterRow.name, ContentFilterRow.description)
    if enabled is not None:
        query = query.where(ContentFilterRow.enabled.is_(enabled))
    if filter_type is not None:
        query = query.where(ContentFilterRow.filter_type == filter_type)
    columns = {
        "priority": (ContentFilterRow.priority, ContentFilterRow.created_at),
        "name": ContentFilterRow.name,
        "created_at": ContentFilterRow.created_at,
    }
    return sorted_by(query, sort, columns, unique=ContentFilterRow.id)


async def all_filters(session: AsyncSession) -> Sequence[ContentFilterRow]:
    """Return the tenant's filters in the order of evaluation."""
    order = (ContentFilterRow.priority, ContentFilterRow.created_at, ContentFilterRow.id)
    return (await session.scalars(select(ContentFilterRow).order_by(*order))).all()


async def count_filters(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(ContentFilterRow))).scalar_one()


async def count_keywords(session: AsyncSession) -> int:
    """Return the number of keywords of all filters."""
    keywords = func.coalesce(func.jsonb_array_length(ContentFilterRow.config["keywords"]), 0)
    return int((await session.execute(select(func.coalesce(func.sum(keywords), 0)))).scalar_one())


async def lock_group(session: AsyncSession, group_id: UUID) -> bool:
    """Return whether the group exists. Locks its row, so that it is not deleted before this transaction ends."""
    query = select(GroupRow.id).where(GroupRow.id == group_id).with_for_update(read=True, key_share=True)
    return (await session.scalars(query)).one_or_none() is not None
