"""Rows and queries of suppressions and custom patterns."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.detection.custom import stream_max_length
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


async def all_suppressions(session: AsyncSession) -> Sequence[SuppressionRow]:
    """Return the tenant's suppressions, oldest first."""
    return (await session.scalars(select(SuppressionRow).order_by(SuppressionRow.created_at, SuppressionRow.id))).all()


async def all_patterns(session: AsyncSession) -> Sequence[CustomPatternRow]:
    """Return the tenant's custom patterns, oldest first."""
    query = select(CustomPatternRow).order_by(CustomPatternRow.created_at, CustomPatternRow.id)
    return (await session.scalars(query)).all()


async def count_patterns(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(CustomPatternRow))).scalar_one()
