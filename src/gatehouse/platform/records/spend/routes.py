"""The endpoint of spend (docs/records.md)."""

from datetime import UTC, date
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.lists import PageWindow, page_window, sort_parameter
from gatehouse.platform.records.spend import table
from gatehouse.platform.records.spend.schemas import Sort, SpendItem, SpendPage, SpendTotals, SpentBy
from gatehouse.platform.records.spend.table import SpendFilters
from gatehouse.platform.request.callers import RESPONSES, AdminReader
from gatehouse.platform.request.injected import Session

router = APIRouter(tags=["Usage"], responses=RESPONSES)

Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]

#: Days of the default period, including today.
_DEFAULT_DAYS: Final = 30


async def _filters(
    *,
    since: Annotated[
        date | None, Query(alias="from", description="First day (UTC). The default is 29 days before `to`.")
    ] = None,
    until: Annotated[date | None, Query(alias="to", description="Last day (UTC). The default is today.")] = None,
    user_id: Annotated[UUID | None, Query(description="Only requests of this user.")] = None,
    group_id: Annotated[UUID | None, Query(description="Only requests of this group.")] = None,
) -> SpendFilters:
    until = until or utc_now().astimezone(UTC).date()
    since = since or date.fromordinal(max(until.toordinal() - _DEFAULT_DAYS + 1, 1))
    return SpendFilters(since, until, user_id, group_id)


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
    """Lists requests, tokens and cost by group, user or API key, over whole days (UTC). A request counts on the day on
    which it arrived. It counts for a group if its user is in this group and in no other."""
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
