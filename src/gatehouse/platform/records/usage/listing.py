"""A page of the usage list, at a cost that does not grow with the number of records.

`usage_counts` says how many records of each kind a day has. The sum is the total; and it says on which days a page's
rows are, so that only these are read, however far the page and however rare the kind. Days that a period cuts in two
are counted in the records themselves.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.platform.records.usage.table import UsageRecordRow, usage_counts

_DAY = timedelta(days=1)


class Filters(NamedTuple):
    """`kind` holds values of `user_id`, `group_id`, `provider`, `model_id`; the period is from `since` to before
    `until`, both in UTC."""

    kind: dict[str, UUID | str]
    since: datetime | None
    until: datetime | None


async def page(
    session: AsyncSession, window: OffsetWindow, filters: Filters, *, only: UUID | None
) -> tuple[Sequence[UsageRecordRow], int]:
    """The rows of the window, newest first, and how many there are without it. `only`: this user's alone."""
    if only is not None:
        if filters.kind.get("user_id", only) != only:
            return [], 0
        filters = filters._replace(kind={**filters.kind, "user_id": only})
    days = await _by_day(session, filters)
    total = sum(records for _, records in days)
    if window.offset >= total:
        return [], total
    # The days' counts, added up from the newest: the page begins in the first whose sum is beyond the offset.
    sums = list(accumulate(records for _, records in days))
    first = next(index for index, upto in enumerate(sums) if upto > window.offset)
    last = next((index for index, upto in enumerate(sums) if upto >= window.offset + window.limit), len(sums) - 1)
    skipped = sums[first - 1] if first else 0
    query = (
        select(UsageRecordRow)
        .where(
            *_conditions(session, filters),
            UsageRecordRow.timestamp >= _begin(days[last][0]),
            UsageRecordRow.timestamp < _begin(days[first][0] + _DAY),
        )
        .order_by(UsageRecordRow.timestamp.desc(), UsageRecordRow.id.desc())
        .limit(window.limit)
        .offset(window.offset - skipped)
    )
    return (await session.scalars(query)).all(), total


async def _by_day(session: AsyncSession, filters: Filters) -> list[tuple[date, int]]:
    """How many records each day has that match, newest day first, without empty ones."""
    since, until = filters.since, filters.until
    query = (
        select(usage_counts.c.day, func.sum(usage_counts.c.records))
        .where(
            usage_counts.c.tenant_id == session.info["tenant_id"],
            *(usage_counts.c[name] == value for name, value in filters.kind.items()),
        )
        .group_by(usage_counts.c.day)
    )
    if since is not None:
        query = query.where(usage_counts.c.day >= since.date())
    if until is not None:
        query = query.where(usage_counts.c.day < until.date())
    days = {day: int(records) for day, records in await session.execute(query)}
    for day in {end.date() for end in (since, until) if end is not None and end != _begin(end.date())}:
        inside = select(func.count()).where(
            *_conditions(session, filters),
            UsageRecordRow.timestamp >= _begin(day),
            UsageRecordRow.timestamp < _begin(day + _DAY),
        )
        days[day] = (await session.execute(inside)).scalar_one()
    return sorted(((day, records) for day, records in days.items() if records), reverse=True)


def _conditions(session: AsyncSession, filters: Filters) -> list[ColumnElement[bool]]:
    conditions = [UsageRecordRow.tenant_id == session.info["tenant_id"]]
    conditions += [getattr(UsageRecordRow, name) == value for name, value in filters.kind.items()]
    if filters.since is not None:
        conditions.append(UsageRecordRow.timestamp >= filters.since)
    if filters.until is not None:
        conditions.append(UsageRecordRow.timestamp < filters.until)
    return conditions


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
