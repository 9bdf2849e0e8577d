"""A page of the usage list."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.platform.records.by_day import ByDay, Filters
from gatehouse.platform.records.usage.table import (
    UsageRecordRow,
    usage_count_deltas,
    usage_counts,
    usage_hour_totals,
    usage_totals,
)

_OF_A_USER = ByDay(UsageRecordRow, union_all(select(usage_counts), select(usage_count_deltas)).subquery())
_OF_ALL = ByDay(UsageRecordRow, usage_totals, usage_hour_totals)


async def page(
    session: AsyncSession, window: OffsetWindow, filters: Filters, *, only: UUID | None
) -> tuple[Sequence[UsageRecordRow], int]:
    """The rows of the window, newest first, and how many there are without it. `only`: this user's alone."""
    if only is not None:
        if filters.kind.get("user_id", only) != only:
            return [], 0
        filters = filters._replace(kind={**filters.kind, "user_id": only})
    records = _OF_A_USER if "user_id" in filters.kind else _OF_ALL
    return await records.page(session, window, filters)
