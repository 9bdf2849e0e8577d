"""The query for a page of the usage list."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, select, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.records.attribution import bounded_end_user
from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.platform.records.by_day import CountedRecords, RecordFilters
from gatehouse.platform.records.usage.table import (
    UsageRecordRow,
    usage_count_deltas,
    usage_counts,
    usage_hour_totals,
    usage_totals,
)

_COUNTED_BY_USER = CountedRecords(
    UsageRecordRow, union_all(select(usage_counts), select(usage_count_deltas)).subquery()
)
_COUNTED_IN_TOTAL = CountedRecords(UsageRecordRow, usage_totals, usage_hour_totals)


def uncounted(*, api_key_id: UUID | None, tag: str | None, end_user: str | None) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of filters by which no table counts. Each repeats the condition of its partial index."""
    if api_key_id is not None:
        yield UsageRecordRow.api_key_id == api_key_id
    if tag is not None:
        yield UsageRecordRow.tags.is_not(None)
        yield UsageRecordRow.tags.contains([tag])
    if end_user is not None:
        # A filter that consists only of control characters matches nothing.
        yield UsageRecordRow.end_user == (bounded_end_user(end_user) or "")


async def page(
    session: AsyncSession, window: OffsetWindow, filters: RecordFilters, *, only: UUID | None
) -> tuple[Sequence[UsageRecordRow], int]:
    """Return the rows of the window, newest first, and the total number. `only` restricts them to one user."""
    if only is not None:
        if filters.kind.get("user_id", only) != only:
            return [], 0
        filters = filters._replace(kind={**filters.kind, "user_id": only})
    if filters.uncounted:
        return await _COUNTED_IN_TOTAL.page_without_counts(session, window, filters)
    records = _COUNTED_BY_USER if "user_id" in filters.kind else _COUNTED_IN_TOTAL
    return await records.page(session, window, filters)
