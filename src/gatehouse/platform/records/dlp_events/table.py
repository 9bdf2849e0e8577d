"""The rows, and the query of the list."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Float, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import PageWindow, counted
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import Row


class DlpEventRow(Row):
    __tablename__ = "dlp_events"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    timestamp: Mapped[datetime] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    request_id: Mapped[str]
    user_id: Mapped[UUID | None]
    group_ids: Mapped[list[str]]
    rule_id: Mapped[str | None]
    rule_name: Mapped[str | None]
    detector_type: Mapped[str | None]
    entity_type: Mapped[str | None]
    direction: Mapped[str]
    status: Mapped[str]
    score: Mapped[float | None] = mapped_column(Float(53))
    match_count: Mapped[int | None]
    model: Mapped[str | None]


class Filters(NamedTuple):
    status: str | None
    entity_type: str | None
    direction: str | None
    user_id: UUID | None
    since: datetime | None
    until: datetime | None


async def page(session: AsyncSession, window: PageWindow, filters: Filters) -> tuple[Sequence[DlpEventRow], int]:
    """The page's events, newest first, and how many there are on all pages."""
    query = select(DlpEventRow).where(DlpEventRow.tenant_id == session.info["tenant_id"])
    for name in ("status", "entity_type", "direction", "user_id"):
        if (value := getattr(filters, name)) is not None:
            query = query.where(getattr(DlpEventRow, name) == value)
    if filters.since is not None:
        query = query.where(DlpEventRow.timestamp >= filters.since)
    if filters.until is not None:
        query = query.where(DlpEventRow.timestamp < filters.until)
    total = (await session.execute(counted(query))).scalar_one()
    ordered = query.order_by(DlpEventRow.timestamp.desc(), DlpEventRow.id.desc())
    return (await session.scalars(window.apply(ordered))).all(), total
