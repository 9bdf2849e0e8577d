"""The queries for a page of the usage list, for one record, and for the series of requests and cost."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, literal_column, select, tuple_, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.records.attribution import bounded_end_user
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import BadRequest, NotFound
from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.platform.changes.chain.table import AuditEventRow
from gatehouse.platform.records.by_day import MAX_SORTED_RECORDS, CountedRecords, RecordFilters
from gatehouse.platform.records.hot import visible_since
from gatehouse.platform.records.minutes import aliases, table
from gatehouse.platform.records.minutes.aliases import AliasPart
from gatehouse.platform.records.minutes.table import Totals
from gatehouse.platform.records.spend.table import record_counts
from gatehouse.platform.records.usage.schemas import SeriesPeriod, SeriesStep, Sort, UsagePart, UsagePoint, UsageSeries
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
_COUNTED_BY_KEY = CountedRecords(UsageRecordRow, record_counts)
_KINDS_BY_KEY: Final = frozenset({"api_key_id", "user_id", "group_id"})
_COUNTED_IN_TOTAL = CountedRecords(UsageRecordRow, usage_totals, usage_hour_totals)

#: Values that no index orders, by the field's name in `sort`.
_SORT_COLUMNS: Final[Mapping[str, ColumnElement[Any]]] = {
    "cost_usd": UsageRecordRow.__table__.c.cost_usd,
    "latency_ms": UsageRecordRow.__table__.c.latency_ms,
    "tokens": UsageRecordRow.__table__.c.input_tokens + UsageRecordRow.__table__.c.output_tokens,
}

#: Periods before the time in a record's id that are searched for the record. The id contains the time at which the
#: record was created: at the start of a stream, otherwise at the end of the request. The request arrived earlier,
#: nearly always within the first of these periods.
_PERIODS_BEFORE_ID: Final = (timedelta(minutes=15), timedelta(days=1))
_CLOCK_TOLERANCE: Final = timedelta(seconds=5)
_UUID_VERSION: Final = 7

_DAYS: Final[Mapping[SeriesPeriod, int]] = {"day": 1, "week": 7, "month": 30}
_NOTHING: Final = Totals(requests=0, errors=0, blocked=0, dlp_triggers=0, cost_usd=Decimal(0))


class UsageRecordNotFound(NotFound):
    message = "Usage record not found"


class TooManyRecordsToSort(BadRequest):
    code = "too_many_records_to_sort"
    message = (
        f"sort: more than {MAX_SORTED_RECORDS:,} records match, and so many can only be sorted by time. Set a shorter"
        " period or more filters, or sort by timestamp."
    )


def uncounted(
    *,
    tag: str | None,
    end_user: str | None,
    status: str | None,
    request_id: str | None,
    model_alias: str | None,
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
    if tag is not None:
        yield UsageRecordRow.tags.is_not(None)
        yield UsageRecordRow.tags.contains([tag])
    if model_alias is not None:
        yield UsageRecordRow.model_alias == model_alias
    if end_user is not None:
        # A filter that has only control characters matches no record.
        yield UsageRecordRow.end_user == (bounded_end_user(end_user) or "")


async def page(
    session: AsyncSession, window: OffsetWindow, filters: RecordFilters, *, sort: Sort, only: UUID | None
) -> tuple[Sequence[UsageRecordRow], int]:
    """Return the rows of the window and the total number of rows. `only` restricts the rows to those of one user.
    Raises `TooManyRecordsToSort`."""
    if only is not None:
        if filters.kind.get("user_id", only) != only:
            return [], 0
        filters = filters._replace(kind={**filters.kind, "user_id": only})
    if "api_key_id" in filters.kind:
        users = await _users_of_key(session, filters.kind["api_key_id"])
        if filters.kind.get("user_id") not in {None, *users}:
            return [], 0
        if len(users) == 1 and users[0] is not None:
            # The records have an index by user, and none by key.
            filters = filters._replace(kind={**filters.kind, "user_id": users[0]})
    records = _counted(filters)
    if (name := sort.removeprefix("-")) in _SORT_COLUMNS:
        order, has_counts = _order(_SORT_COLUMNS[name], descending=sort.startswith("-")), records is not None
        sorted_page = await (records or _COUNTED_IN_TOTAL).sorted_page(
            session, window, filters, order, has_counts=has_counts
        )
        if sorted_page is None:
            raise TooManyRecordsToSort
        return sorted_page
    oldest_first = sort == "timestamp"
    if records is None:
        return await _COUNTED_IN_TOTAL.page_without_counts(session, window, filters, oldest_first=oldest_first)
    return await records.page(session, window, filters, oldest_first=oldest_first)


def _counted(filters: RecordFilters) -> CountedRecords[UsageRecordRow] | None:
    """Return the list whose counts have the columns of the filters, or None if no counts have all of them."""
    if filters.uncounted:
        return None
    if "api_key_id" in filters.kind:
        return _COUNTED_BY_KEY if _KINDS_BY_KEY.issuperset(filters.kind) else None
    return _COUNTED_BY_USER if "user_id" in filters.kind else _COUNTED_IN_TOTAL


def _order(column: ColumnElement[Any], *, descending: bool) -> list[ColumnElement[Any]]:
    """Return the order by a column, with unknown values last and newer records before older ones."""
    ordered = column.desc() if descending else column.asc()
    return [ordered.nulls_last(), UsageRecordRow.timestamp.desc(), UsageRecordRow.id.desc()]


async def _users_of_key(session: AsyncSession, key_id: UUID | str) -> Sequence[UUID | None]:
    """Return the users whose requests were made with the key: its owner, or nobody if it was not used."""
    columns = record_counts.c
    query = select(columns.user_id).where(
        columns.tenant_id == session.info["tenant_id"], columns.api_key_id == key_id, columns.records > 0
    )
    return (await session.scalars(query.distinct())).all()


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


async def usage_series(
    session: AsyncSession, period: SeriesPeriod, *, alias: str | None, by: AliasPart | None
) -> UsageSeries:
    """Return the series of today, or of the last 7 or 30 days including today (UTC). `alias` restricts it to the
    requests of one model alias. `by` adds the series of each alias or deployment."""
    step: SeriesStep = "hour" if period == "day" else "day"
    length = timedelta(hours=1) if step == "hour" else timedelta(days=1)
    now = utc_now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = midnight - timedelta(days=_DAYS[period] - 1)
    starts = [since + length * place for place in range((now - since) // length + 1)]

    def points(totals: Mapping[datetime, Totals]) -> list[UsagePoint]:
        return [UsagePoint(start=start, **totals.get(start, _NOTHING)._asdict()) for start in starts]

    all_totals = await (
        table.series(session, since, step) if alias is None else aliases.series(session, since, step, alias)
    )
    parts: list[UsagePart] = []
    if by is not None:
        for part, totals in (await aliases.series_of_parts(session, since, step, alias, by)).items():
            parts.append(
                UsagePart(
                    **part._asdict(),
                    requests=sum(total.requests for total in totals.values()),
                    errors=sum(total.errors for total in totals.values()),
                    cost_usd=sum((total.cost_usd for total in totals.values()), Decimal(0)),
                    points=points(totals),
                )
            )
    return UsageSeries(period=period, step=step, points=points(all_totals), parts=parts)
