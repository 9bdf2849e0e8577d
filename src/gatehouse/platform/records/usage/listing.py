"""A page of the usage list."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.platform.records.by_day import ByDay, Filters
from gatehouse.platform.records.usage.table import UsageRecordRow, usage_counts

_RECORDS = ByDay(UsageRecordRow, usage_counts)


async def page(
    session: AsyncSession, window: OffsetWindow, filters: Filters, *, only: UUID | None
) -> tuple[Sequence[UsageRecordRow], int]:
    """The rows of the window, newest first, and how many there are without it. `only`: this user's alone."""
    if only is not None:
        if filters.kind.get("user_id", only) != only:
            return [], 0
        filters = filters._replace(kind={**filters.kind, "user_id": only})
    return await _RECORDS.page(session, window, filters)
