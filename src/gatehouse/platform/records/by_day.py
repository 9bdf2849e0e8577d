"""Pages of records, newest first, at a cost that does not grow with their number.

A table of counts says how many records of each kind a day (UTC) has. The sum is the total; and it says on which days a
page's rows are, so that only these are read, however far the page and however rare the kind. Days that a period cuts in
two are counted in the records themselves.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Table, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import Window
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.records.hot import shown_since

R = TypeVar("R", bound=Row)

_DAY = timedelta(days=1)


class Filters(NamedTuple):
    """`kind` holds values of columns that both tables have; the period is from `since` to before `until`, in UTC."""

    kind: Mapping[str, UUID | str]
    since: datetime | None
    until: datetime | None


class ByDay(Generic[R]):
    """`records` has the key `tenant_id`, `timestamp`, `id`; `counts` has `tenant_id`, `day`, `records`, and the kinds
    that can be filtered by."""

    def __init__(self, records: type[R], counts: Table) -> None:
        self._row = records
        self._records = records.__table__.c
        self._counts = counts.c

    async def page(self, session: AsyncSession, window: Window, filters: Filters) -> tuple[Sequence[R], int]:
        """The rows of the window, and how many there are without it. What is past the hot window is not there."""
        hot = await shown_since(session)
        if hot is not None:
            filters = filters._replace(since=hot if filters.since is None else max(hot, filters.since))
        days = await self._by_day(session, filters)
        total = sum(records for _, records in days)
        if window.offset >= total:
            return [], total
        # The days' counts, added up from the newest: the page begins in the first whose sum is beyond the offset.
        sums = list(accumulate(records for _, records in days))
        first = next(index for index, upto in enumerate(sums) if upto > window.offset)
        last = next((index for index, upto in enumerate(sums) if upto >= window.offset + window.limit), len(sums) - 1)
        skipped = sums[first - 1] if first else 0
        query = select(self._row).where(
            *self._conditions(session, filters),
            self._records.timestamp >= _begin(days[last][0]),
            self._records.timestamp < _begin(days[first][0] + _DAY),
        )
        newer = window.offset - skipped
        size = min(window.limit, total - window.offset)
        older = sums[last] - window.offset - size
        # Of a day with very many, its nearer end.
        if newer <= older:
            query = query.order_by(self._records.timestamp.desc(), self._records.id.desc()).limit(size).offset(newer)
            return (await session.scalars(query)).all(), total
        query = query.order_by(self._records.timestamp, self._records.id).limit(size).offset(older)
        return (await session.scalars(query)).all()[::-1], total

    async def _by_day(self, session: AsyncSession, filters: Filters) -> list[tuple[date, int]]:
        """How many records each day has that match, newest day first, without empty ones."""
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
        days = {day: int(records) for day, records in await session.execute(query)}
        for day in {end.date() for end in (since, until) if end is not None and end != _begin(end.date())}:
            inside = select(func.count()).where(
                *self._conditions(session, filters),
                self._records.timestamp >= _begin(day),
                self._records.timestamp < _begin(day + _DAY),
            )
            days[day] = (await session.execute(inside)).scalar_one()
        return sorted(((day, records) for day, records in days.items() if records), reverse=True)

    def _conditions(self, session: AsyncSession, filters: Filters) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = [self._records.tenant_id == session.info["tenant_id"]]
        conditions += [self._records[name] == value for name, value in filters.kind.items()]
        if filters.since is not None:
            conditions.append(self._records.timestamp >= filters.since)
        if filters.until is not None:
            conditions.append(self._records.timestamp < filters.until)
        return conditions


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
