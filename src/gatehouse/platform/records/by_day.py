"""Pages of records, newest first, at a cost that does not grow with their number where a table counts them.

A table of counts says how many records of each kind a day (UTC) has. The sum is the total; and it says on which days a
page's rows are, so that only these are read, however far the page and however rare the kind. Where there are counts by
the hour too, the days at the page's ends are cut to hours, and so are those that a period cuts in two; what is left is
counted in the records themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from gatehouse.foundation.http.lists import Window
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.records.hot import shown_since

R = TypeVar("R", bound=Row)

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
#: Of so many records that match, all are looked up by what they match; of more, they are met in their order.
_FEW: Final = 2_000


class Filters(NamedTuple):
    """`kind` holds values of columns that both tables have; the period is from `since` to before `until`, in UTC."""

    kind: Mapping[str, UUID | str]
    since: datetime | None
    until: datetime | None
    #: further conditions on the records; no table counts by them
    uncounted: tuple[ColumnElement[bool], ...] = ()


class _Span(NamedTuple):
    """A stretch of time with what is in it; of `until`, nothing."""

    since: datetime
    until: datetime
    records: int


class _Place(NamedTuple):
    """Where a page is in spans: from the first to the last of these, after so many records in those before them."""

    first: int
    last: int
    skipped: int


class ByDay(Generic[R]):
    """`records` has the key `tenant_id`, `timestamp`, `id`; `counts` has `tenant_id`, `day`, `records`, and the kinds
    that can be filtered by; `hours`, where there are such counts, `hour` instead of the day."""

    def __init__(self, records: type[R], counts: FromClause, hours: FromClause | None = None) -> None:
        self._row = records
        self._records = records.__table__.c
        self._counts = counts.c
        self._hours = None if hours is None else hours.c

    async def page(self, session: AsyncSession, window: Window, filters: Filters) -> tuple[Sequence[R], int]:
        """The rows of the window, and how many there are without it. What is past the hot window is not there."""
        filters = await _shown(session, filters)
        spans = await self._spans(session, filters)
        total = sum(span.records for span in spans)
        if window.offset >= total:
            return [], total
        place = _place(spans, window)
        if self._hours is not None:
            long = {
                end: await self._hourly(session, filters, spans[end])
                for end in {place.first, place.last}
                if spans[end].records > _FEW and spans[end].until - spans[end].since > _HOUR
            }
            spans = [part for end, span in enumerate(spans) for part in long.get(end, [span])]
            # They are counted one statement later: the page must not be beyond what they say.
            if window.offset >= sum(span.records for span in spans):
                return [], total
            place = _place(spans, window)
        return await self._rows(session, window, filters, spans, place), total

    async def page_without_counts(
        self, session: AsyncSession, window: Window, filters: Filters
    ) -> tuple[Sequence[R], int]:
        """The same where there are `uncounted` conditions, at a cost that grows with the records that match."""
        conditions = self._conditions(session, await _shown(session, filters))
        total = (await session.execute(select(func.count()).where(*conditions))).scalar_one()
        query = select(self._row).where(*conditions)
        query = query.order_by(self._records.timestamp.desc(), self._records.id.desc())
        return (await session.scalars(query.limit(window.limit).offset(window.offset))).all(), total

    async def _rows(
        self, session: AsyncSession, window: Window, filters: Filters, spans: Sequence[_Span], place: _Place
    ) -> Sequence[R]:
        found = spans[place.first : place.last + 1]
        matching = sum(span.records for span in found)
        query = select(self._row).where(
            *self._conditions(session, filters),
            self._records.timestamp >= found[-1].since,
            self._records.timestamp < found[0].until,
        )
        row: Any = self._row
        if matching <= _FEW:
            # Else PostgreSQL may think that it meets them soon when it follows time, among very many others.
            row = aliased(self._row, query.cte("matching").prefix_with("MATERIALIZED"))
            query = select(row)
        newer = window.offset - place.skipped
        size = min(window.limit, matching - newer)
        older = matching - newer - size
        # Of very many, the nearer end.
        if newer <= older:
            query = query.order_by(row.timestamp.desc(), row.id.desc()).limit(size).offset(newer)
            return (await session.scalars(query)).all()
        query = query.order_by(row.timestamp, row.id).limit(size).offset(older)
        return (await session.scalars(query)).all()[::-1]

    async def _spans(self, session: AsyncSession, filters: Filters) -> list[_Span]:
        """What matches, newest first, without empty ones: days, and what a period cuts of them."""
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
        cut = {end.date() for end in (since, until) if end is not None and end != _begin(end.date())}
        spans = [
            _Span(_begin(day), _begin(day + _DAY), int(records))
            for day, records in await session.execute(query)
            if day not in cut
        ]
        for day in cut:
            spans += await self._hourly(session, filters, _Span(_begin(day), _begin(day + _DAY), 0))
        return _newest_first(spans)

    async def _hourly(self, session: AsyncSession, filters: Filters, day: _Span) -> list[_Span]:
        """A day hour by hour, as far as the period goes; at once where there are no counts by the hour."""
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

    async def _counted(self, session: AsyncSession, filters: Filters, since: datetime, until: datetime) -> _Span:
        """Of the records themselves."""
        inside = select(func.count()).where(
            *self._conditions(session, filters), self._records.timestamp >= since, self._records.timestamp < until
        )
        return _Span(since, until, (await session.execute(inside)).scalar_one())

    def _conditions(self, session: AsyncSession, filters: Filters) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = [self._records.tenant_id == session.info["tenant_id"]]
        conditions += [self._records[name] == value for name, value in filters.kind.items()]
        conditions += filters.uncounted
        if filters.since is not None:
            conditions.append(self._records.timestamp >= filters.since)
        if filters.until is not None:
            conditions.append(self._records.timestamp < filters.until)
        return conditions


async def _shown(session: AsyncSession, filters: Filters) -> Filters:
    """The filters, cut to the hot window."""
    hot = await shown_since(session)
    if hot is None:
        return filters
    return filters._replace(since=hot if filters.since is None else max(hot, filters.since))


def _place(spans: Sequence[_Span], window: Window) -> _Place:
    # Added up from the newest: the page begins in the first whose sum is beyond the offset.
    sums = list(accumulate(span.records for span in spans))
    first = next(index for index, upto in enumerate(sums) if upto > window.offset)
    last = next((index for index, upto in enumerate(sums) if upto >= window.offset + window.limit), len(sums) - 1)
    return _Place(first, last, sums[first - 1] if first else 0)


def _newest_first(spans: Iterable[_Span]) -> list[_Span]:
    return sorted((span for span in spans if span.records), reverse=True)


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _hour(moment: datetime) -> datetime:
    """The one that it is in."""
    return moment.replace(minute=0, second=0, microsecond=0)
