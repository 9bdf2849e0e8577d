"""The endpoints of spend (docs/records.md)."""

from datetime import UTC, date
from typing import Annotated, Final, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.lists import PageWindow, page_window, sort_parameter
from gatehouse.platform.records.filters import ExactFilter
from gatehouse.platform.records.minutes import aliases
from gatehouse.platform.records.minutes.aliases import AliasPart
from gatehouse.platform.records.spend import table
from gatehouse.platform.records.spend.schemas import (
    AliasSort,
    AliasSpendItem,
    AliasSpendPage,
    AliasSpendTotals,
    Sort,
    SpendItem,
    SpendPage,
    SpendTotals,
    SpentBy,
)
from gatehouse.platform.records.spend.table import SpendFilters
from gatehouse.platform.request.callers import RESPONSES, AdminReader
from gatehouse.platform.request.injected import Session

router = APIRouter(tags=["Usage"], responses=RESPONSES)

Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]

#: Days of the default period, including today.
_DEFAULT_DAYS: Final = 30


class _Days(NamedTuple):
    since: date
    until: date


async def _days(
    *,
    since: Annotated[
        date | None, Query(alias="from", description="First day (UTC). The default is 29 days before `to`.")
    ] = None,
    until: Annotated[date | None, Query(alias="to", description="Last day (UTC). The default is today.")] = None,
) -> _Days:
    until = until or utc_now().astimezone(UTC).date()
    return _Days(since or date.fromordinal(max(until.toordinal() - _DEFAULT_DAYS + 1, 1)), until)


Days = Annotated[_Days, Depends(_days)]


async def _filters(
    days: Days,
    *,
    user_id: Annotated[UUID | None, Query(description="Only requests of this user.")] = None,
    group_id: Annotated[UUID | None, Query(description="Only requests of this group.")] = None,
) -> SpendFilters:
    return SpendFilters(days.since, days.until, user_id, group_id)


@router.get("/api/admin/usage/spend", response_model=SpendPage)
async def list_spend(
    caller: AdminReader,
    session: Session,
    window: Window,
    filters: Annotated[SpendFilters, Depends(_filters)],
    *,
    by: Annotated[SpentBy, Query(description="What the totals are grouped by.")] = "user",
    sort: Annotated[Sort, sort_parameter()] = "-cost_usd",
) -> SpendPage:
    """Lists requests, tokens and cost by group, user or API key, over whole days (UTC). A request is counted on the day
    on which it arrived. It is counted for a group if its user is in this group and in no other."""
    rows, sums = await table.page(session, window, by, sort, filters)
    return SpendPage(
        by=by,
        since=filters.since,
        until=filters.until,
        items=[SpendItem(**row._asdict()) for row in rows],
        sum=SpendTotals(**{name: getattr(sums, name) for name in SpendTotals.model_fields}),
        total=sums.items,
        page=window.page,
        page_size=window.size,
    )


@router.get("/api/admin/usage/spend/model-aliases", response_model=AliasSpendPage)
async def list_spend_of_model_aliases(
    caller: AdminReader,
    session: Session,
    window: Window,
    days: Days,
    *,
    by: Annotated[AliasPart, Query(description="What the totals are grouped by.")] = "model_alias",
    model_alias: Annotated[ExactFilter, Query(description="Only requests of this model alias.")] = None,
    sort: Annotated[AliasSort, sort_parameter()] = "-cost_usd",
) -> AliasSpendPage:
    """Lists requests, errors and cost by model alias, or by deployment of the aliases, over whole days (UTC). A request
    counts when it ends. The totals of the last 32 days are kept."""
    rows, sums = await aliases.page(session, window, by, sort, since=days.since, until=days.until, alias=model_alias)
    return AliasSpendPage(
        by=by,
        since=days.since,
        until=days.until,
        items=[AliasSpendItem(**row._asdict()) for row in rows],
        sum=AliasSpendTotals(**{name: getattr(sums, name) for name in AliasSpendTotals.model_fields}),
        total=sums.items,
        page=window.page,
        page_size=window.size,
    )
