"""Returns pages of records in the order of time, at a cost that does not grow with the number of records.

A table of counts has one row for each day (UTC) and each kind of record. A kind is a combination of values of the
columns that the records can be filtered by. The sum of the counts is the total number of records. The counts also show
which days contain the rows of a page. Only the records of these days are read, even for a far page or a rare kind.
If there are also counts by the hour, two kinds of days are divided into hours: those at the ends of the page, and those
that the filtered period contains in part. Records in parts of an hour are counted in the table of records.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from gatehouse.foundation.http.lists import OffsetWindow, Window, count_query
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.records.hot import visible_since

R = TypeVar("R", bound=Row)

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
#: If at most this many records match, all of them are selected and then sorted. Otherwise they are read in the order of
#: time.
_MAX_COLLECTED_RECORDS: Final = 2_000
#: The maximum number of matching records of a list that is sorted by a value without an index.
MAX_SORTED_RECORDS: Final = 100_000


class RecordFilters(NamedTuple):
    """Filters of a list. `kind` are values of columns that both tables have. The period begins at `since` and ends
    before `until`, in UTC."""

    kind: Mapping[str, UUID | str]
    since: datetime | None
    until: datetime | None
    #: further conditions on the records, for which no table has counts
    uncounted: tuple[ColumnElement[bool], ...] = ()


class _Span(NamedTuple):
    """A period from `since` until before `until`, and the number of records in it."""

    since: datetime
    until: datetime
    records: int


class _PagePosition(NamedTuple):
    """The indexes of the first and the last span with rows of the page, and the number of records in the spans before
    the first."""

    first: int
    last: int
    skipped: int


class CountedRecords(Generic[R]):
    """A paged list of records.

    `records` has the key `tenant_id`, `timestamp`, `id`. `counts` has the columns `tenant_id`, `day`, `records`, and
    the columns of the kinds. `hours`, if there are counts by the hour, has `hour` instead of `day`."""

    def __init__(self, records: type[R], counts: FromClause, hours: FromClause | None = None) -> None:
        self._row = records
        self._records = records.__table__.c
        self._counts = counts.c
        self._hours = None if hours is None else hours.c

    async def page(
        self, session: AsyncSession, window: Window, filters: RecordFilters, *, oldest_first: bool = False
    ) -> tuple[Sequence[R], int]:
        """Return the rows of the window and the total number of rows. Records older than the hot window are
        excluded."""
        filters = await _within_hot_window(session, filters)
        spans = await self._spans(session, filters)
        total = sum(span.records for span in spans)
        if window.offset >= total:
            return [], total
        rows = await self._page(session, window, filters, spans, oldest_first=oldest_first)
        return rows[::-1] if oldest_first else rows, total

    async def _page(
        self, session: AsyncSession, window: Window, filters: RecordFilters, spans: list[_Span], *, oldest_first: bool
    ) -> Sequence[R]:
        """Return the rows of the window, newest first, even if the window counts from the oldest row."""
        newest_first = _reversed(window, spans) if oldest_first else window
        position = _page_position(spans, newest_first)
        if self._hours is not None:
            hourly = {
                end: await self._hourly(session, filters, spans[end])
                for end in {position.first, position.last}
                if spans[end].records > _MAX_COLLECTED_RECORDS and spans[end].until - spans[end].since > _HOUR
            }
            spans = [part for end, span in enumerate(spans) for part in hourly.get(end, [span])]
            # The hours were read by a later statement, so their sum may be smaller than the total.
            if window.offset >= sum(span.records for span in spans):
                return []
            newest_first = _reversed(window, spans) if oldest_first else window
            position = _page_position(spans, newest_first)
        return await self._rows(session, newest_first, filters, spans, position, from_oldest=oldest_first)

    async def page_without_counts(
        self, session: AsyncSession, window: Window, filters: RecordFilters, *, oldest_first: bool = False
    ) -> tuple[Sequence[R], int]:
        """Return the rows of the window and the total number, with `uncounted` conditions. The cost grows with the
        number of matching records."""
        conditions = self._conditions(session, await _within_hot_window(session, filters))
        total = (await session.execute(select(func.count()).where(*conditions))).scalar_one()
        query = select(self._row).where(*conditions)
        order = (self._records.timestamp, self._records.id)
        query = query.order_by(*(order if oldest_first else (column.desc() for column in order)))
        return (await session.scalars(query.limit(window.limit).offset(window.offset))).all(), total

    async def sorted_page(
        self,
        session: AsyncSession,
        window: Window,
        filters: RecordFilters,
        order: Sequence[ColumnElement[Any]],
        *,
        has_counts: bool,
    ) -> tuple[Sequence[R], int] | None:
        """Return the rows of the window in an order that no index supplies, and the total number of rows. All matching
        records are read, so return None if more than `MAX_SORTED_RECORDS` records match. The last column of the order
        must be unique. `has_counts` is whether the counts have the columns of the filters; then only days with matching
        records are read."""
        filters = await _within_hot_window(session, filters)
        query = select(self._row).where(*self._conditions(session, filters))
        if has_counts:
            spans = await self._spans(session, filters)
            total = sum(span.records for span in spans)
            if spans:
                query = query.where(
                    self._records.timestamp >= spans[-1].since, self._records.timestamp < spans[0].until
                )
        else:
            total = (await session.execute(count_query(query, MAX_SORTED_RECORDS + 1))).scalar_one()
        if total > MAX_SORTED_RECORDS:
            return None
        if window.offset >= total:
            return [], total
        query = query.order_by(*order).limit(window.limit).offset(window.offset)
        return (await session.scalars(query)).all(), total

    async def _rows(
        self,
        session: AsyncSession,
        window: Window,
        filters: RecordFilters,
        spans: Sequence[_Span],
        position: _PagePosition,
        *,
        from_oldest: bool,
    ) -> Sequence[R]:
        page_spans = spans[position.first : position.last + 1]
        matching = sum(span.records for span in page_spans)
        query = select(self._row).where(
            *self._conditions(session, filters),
            self._records.timestamp >= page_spans[-1].since,
            self._records.timestamp < page_spans[0].until,
        )
        row: Any = self._row
        if matching <= _MAX_COLLECTED_RECORDS:
            # Otherwise PostgreSQL may scan the index on time, because it expects to find the few matching records soon
            # among very many others.
            row = aliased(self._row, query.cte("matching").prefix_with("MATERIALIZED"))
            query = select(row)
        newer = window.offset - position.skipped
        size = min(window.limit, matching - newer)
        older = matching - newer - size
        # Read from the end that is nearer to the page. A list with the oldest records first is read from their end, so
        # that new records do not shift its pages.
        if newer <= older and not from_oldest:
            query = query.order_by(row.timestamp.desc(), row.id.desc()).limit(size).offset(newer)
            return (await session.scalars(query)).all()
        query = query.order_by(row.timestamp, row.id).limit(size).offset(older)
        return (await session.scalars(query)).all()[::-1]

    async def _spans(self, session: AsyncSession, filters: RecordFilters) -> list[_Span]:
        """Return the non-empty spans of matching records, newest first. A span is a day, or a part of a day that the
        period cuts."""
        since, until = filters.since, filters.until
        query = (
            select(self._counts.day, func.sum(self._counts.records))
            .where(
                self._counts.tenant_id == session.info["tenant_id"],
                *(self._counts[name] == value for name, value in filters.kind.items()),
            )
            .group_by(self._counts.day)
        )
        if since is not None:
            query = query.where(self._counts.day >= since.date())
        if until is not None:
            query = query.where(self._counts.day < until.date())
        cut_days = {end.date() for end in (since, until) if end is not None and end != _begin(end.date())}
        spans = [
            _Span(_begin(day), _begin(day + _DAY), int(records))
            for day, records in await session.execute(query)
            if day not in cut_days
        ]
        for day in cut_days:
            spans += await self._hourly(session, filters, _Span(_begin(day), _begin(day + _DAY), 0))
        return _newest_first(spans)

    async def _hourly(self, session: AsyncSession, filters: RecordFilters, day: _Span) -> list[_Span]:
        """Return the spans of a day within the period: its hours, or one span if there are no counts by the hour."""
        begin = max(day.since, filters.since or day.since)
        end = min(day.until, filters.until or day.until)
        if begin >= end:
            return []
        if self._hours is None:
            return [await self._counted(session, filters, begin, end)]
        first, last = _hour(begin + _HOUR - timedelta.resolution), _hour(end)
        if first > last:
            return [await self._counted(session, filters, begin, end)]
        query = (
            select(self._hours.hour, func.sum(self._hours.records))
            .where(
                self._hours.tenant_id == session.info["tenant_id"],
                self._hours.hour >= first,
                self._hours.hour < last,
                *(self._hours[name] == value for name, value in filters.kind.items()),
            )
            .group_by(self._hours.hour)
        )
        spans = [_Span(hour, hour + _HOUR, int(records)) for hour, records in await session.execute(query)]
        if begin < first:
            spans.append(await self._counted(session, filters, begin, first))
        if last < end:
            spans.append(await self._counted(session, filters, last, end))
        return _newest_first(spans)

    async def _counted(self, session: AsyncSession, filters: RecordFilters, since: datetime, until: datetime) -> _Span:
        """Count the records themselves between the two times."""
        inside = select(func.count()).where(
            *self._conditions(session, filters), self._records.timestamp >= since, self._records.timestamp < until
        )
        return _Span(since, until, (await session.execute(inside)).scalar_one())

    def _conditions(self, session: AsyncSession, filters: RecordFilters) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = [self._records.tenant_id == session.info["tenant_id"]]
        conditions += [self._records[name] == value for name, value in filters.kind.items()]
        conditions += filters.uncounted
        if filters.since is not None:
            conditions.append(self._records.timestamp >= filters.since)
        if filters.until is not None:
            conditions.append(self._records.timestamp < filters.until)
        return conditions


async def _within_hot_window(session: AsyncSession, filters: RecordFilters) -> RecordFilters:
    """Restrict the filters to the hot window."""
    hot = await visible_since(session)
    if hot is None:
        return filters
    return filters._replace(since=hot if filters.since is None else max(hot, filters.since))


def _page_position(spans: Sequence[_Span], window: Window) -> _PagePosition:
    # The page begins in the first span at which the cumulative sum exceeds the offset.
    sums = list(accumulate(span.records for span in spans))
    first = next(index for index, total in enumerate(sums) if total > window.offset)
    last = next((index for index, total in enumerate(sums) if total >= window.offset + window.limit), len(sums) - 1)
    return _PagePosition(first, last, sums[first - 1] if first else 0)


def _reversed(window: Window, spans: Sequence[_Span]) -> OffsetWindow:
    """Convert a window that counts from the oldest record to the window with the same rows that counts from the
    newest."""
    total = sum(span.records for span in spans)
    size = min(window.limit, total - window.offset)
    return OffsetWindow(size, total - window.offset - size)


def _newest_first(spans: Iterable[_Span]) -> list[_Span]:
    return sorted((span for span in spans if span.records), reverse=True)


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _hour(moment: datetime) -> datetime:
    """Return the beginning of the hour that contains the moment."""
    return moment.replace(minute=0, second=0, microsecond=0)
