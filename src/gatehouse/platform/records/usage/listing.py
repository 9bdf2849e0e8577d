"""The queries for a page of the usage list, and for one record."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, literal_column, select, tuple_, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.records.attribution import bounded_end_user
from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.platform.changes.chain.table import AuditEventRow
from gatehouse.platform.records.by_day import CountedRecords, RecordFilters
from gatehouse.platform.records.hot import visible_since
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


#: Periods before the time in a record's id that are searched for the record. The id contains the time at which the
#: record was created: at the start of a stream, otherwise at the end of the request. The request arrived earlier,
#: nearly always within the first of these periods.
_PERIODS_BEFORE_ID: Final = (timedelta(minutes=15), timedelta(days=1))
_CLOCK_TOLERANCE: Final = timedelta(seconds=5)
_UUID_VERSION: Final = 7


def uncounted(
    *, api_key_id: UUID | None, tag: str | None, end_user: str | None, status: str | None, request_id: str | None
) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of filters for which no table has counts. Each repeats the condition of its partial
    index."""
    if request_id is not None:
        # The audit events have an index on the request id, and contain the id and the time of their usage record.
        yield tuple_(UsageRecordRow.timestamp, UsageRecordRow.id).in_(
            select(AuditEventRow.timestamp, AuditEventRow.id).where(
                AuditEventRow.tenant_id == UsageRecordRow.tenant_id, AuditEventRow.request_id == request_id
            )
        )
    if status is not None:
        yield UsageRecordRow.status == status
        if status != "success":
            yield UsageRecordRow.status != literal_column("'success'")
    if api_key_id is not None:
        yield UsageRecordRow.api_key_id == api_key_id
    if tag is not None:
        yield UsageRecordRow.tags.is_not(None)
        yield UsageRecordRow.tags.contains([tag])
    if end_user is not None:
        # A filter that has only control characters matches no record.
        yield UsageRecordRow.end_user == (bounded_end_user(end_user) or "")


async def page(
    session: AsyncSession, window: OffsetWindow, filters: RecordFilters, *, only: UUID | None
) -> tuple[Sequence[UsageRecordRow], int]:
    """Return the rows of the window, newest first, and the total number of rows. `only` restricts the rows to those of
    one user."""
    if only is not None:
        if filters.kind.get("user_id", only) != only:
            return [], 0
        filters = filters._replace(kind={**filters.kind, "user_id": only})
    if filters.uncounted:
        return await _COUNTED_IN_TOTAL.page_without_counts(session, window, filters)
    records = _COUNTED_BY_USER if "user_id" in filters.kind else _COUNTED_IN_TOTAL
    return await records.page(session, window, filters)


async def find(session: AsyncSession, record_id: UUID, *, only: UUID | None) -> UsageRecordRow | None:
    """Return a record by its id, or None if there is none or if it is older than the hot window. `only` restricts the
    search to records of one user."""
    made_at = _made_at(record_id)
    if made_at is None:
        return None
    hot = await visible_since(session)
    for period in _PERIODS_BEFORE_ID:
        since = made_at - period if hot is None else max(hot, made_at - period)
        query = select(UsageRecordRow).where(
            UsageRecordRow.tenant_id == session.info["tenant_id"],
            UsageRecordRow.id == record_id,
            UsageRecordRow.timestamp >= since,
            UsageRecordRow.timestamp <= made_at + _CLOCK_TOLERANCE,
        )
        if only is not None:
            query = query.where(UsageRecordRow.user_id == only)
        if (row := (await session.scalars(query)).one_or_none()) is not None:
            return row
    return None


def _made_at(record_id: UUID) -> datetime | None:
    """Return the time that an id contains, or None if it contains no time or a time that no record can have."""
    if record_id.version != _UUID_VERSION:
        return None
    try:
        return datetime.fromtimestamp((record_id.int >> 80) / 1000, UTC)
    except ValueError:
        # The time is after the year 9999.
        return None
