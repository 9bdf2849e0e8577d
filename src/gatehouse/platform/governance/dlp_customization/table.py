"""Rows and queries of suppressions and custom patterns."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.detection.custom import stream_max_length
from gatehouse.foundation.http.lists import containing, sorted_by
from gatehouse.foundation.storage.rows import TenantRow


class SuppressionRow(TenantRow):
    __tablename__ = "dlp_suppressions"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    pattern_id: Mapped[str]
    reason: Mapped[str | None]
    created_by: Mapped[str | None]
    created_at: Mapped[datetime]


class CustomPatternRow(TenantRow):
    __tablename__ = "dlp_custom_patterns"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    entity_type: Mapped[str]
    pattern: Mapped[str]
    category: Mapped[str]
    action_tier: Mapped[str]
    confidence_threshold: Mapped[float]
    context_words: Mapped[list[str]]
    enabled: Mapped[bool]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    @property
    def stream_max_length(self) -> int | None:
        return stream_max_length(self.pattern)


def suppressions_query(*, search: str | None, sort: str) -> Select[SuppressionRow]:
    """Return the query of suppressions by part of the pattern's id or the reason."""
    query = containing(select(SuppressionRow), search, SuppressionRow.pattern_id, SuppressionRow.reason)
    columns = {"pattern_id": SuppressionRow.pattern_id, "created_at": SuppressionRow.created_at}
    return sorted_by(query, sort, columns, unique=SuppressionRow.id)


def patterns_query(*, search: str | None, enabled: bool | None, sort: str) -> Select[CustomPatternRow]:
    """Return the query of custom patterns by part of the name or the entity type, and state."""
    query = containing(select(CustomPatternRow), search, CustomPatternRow.name, CustomPatternRow.entity_type)
    if enabled is not None:
        query = query.where(CustomPatternRow.enabled.is_(enabled))
    columns = {
        "name": CustomPatternRow.name,
        "entity_type": CustomPatternRow.entity_type,
        "created_at": CustomPatternRow.created_at,
    }
    return sorted_by(query, sort, columns, unique=CustomPatternRow.id)


async def all_suppressions(session: AsyncSession) -> Sequence[SuppressionRow]:
    """Return the tenant's suppressions, oldest first."""
    return (await session.scalars(select(SuppressionRow).order_by(SuppressionRow.created_at, SuppressionRow.id))).all()


async def all_patterns(session: AsyncSession) -> Sequence[CustomPatternRow]:
    """Return the tenant's custom patterns, oldest first."""
    query = select(CustomPatternRow).order_by(CustomPatternRow.created_at, CustomPatternRow.id)
    return (await session.scalars(query)).all()


async def count_patterns(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(CustomPatternRow))).scalar_one()
