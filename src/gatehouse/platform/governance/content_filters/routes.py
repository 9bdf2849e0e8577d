"""Endpoints of content filters. `test` is registered before `{filter_id}`, which would match it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.http.lists import (
    OptionalWindow,
    optional_window,
    search_parameter,
    sort_parameter,
    windowed,
)
from gatehouse.platform.governance.content_filters import service
from gatehouse.platform.governance.content_filters.schemas import (
    ContentFilter,
    ContentFilterUpdate,
    FilterTrial,
    FilterTried,
    NewContentFilter,
    Sort,
)
from gatehouse.platform.governance.content_filters.service import ContentFilterNotFound
from gatehouse.platform.governance.content_filters.table import ContentFilterRow, list_query
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost
from gatehouse.policy.governance import FilterType

router = APIRouter(prefix="/api/admin/content-filters", tags=["Content filters"], responses=RESPONSES)

LoadedFilter = Annotated[ContentFilterRow, Depends(loaded(ContentFilterRow, "filter_id", ContentFilterNotFound))]
Search = Annotated[str | None, search_parameter("Part of the name or the description.")]
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]


@router.get("/", response_model=list[ContentFilter])
async def list_content_filters(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Search = None,
    enabled: Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")] = None,
    filter_type: Annotated[FilterType | None, Query(description="Only filters of this type.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "priority",
) -> object:
    """Lists the organization's filters, by default all of them, in the order of evaluation. The header `X-Total-Count`
    is the number of all matching filters, regardless of `limit` and `offset`."""
    query = list_query(search=search, enabled=enabled, filter_type=filter_type, sort=sort)
    return await windowed(session, query, window, response)


@router.post(
    "/", status_code=201, response_model=ContentFilter, responses={409: {"description": "The limit is reached."}}
)
async def create_content_filter(caller: Admin, body: NewContentFilter, change: Changing) -> object:
    """Adds a filter. It is active when the response arrives."""
    return await service.create(change, body)


@router.post("/test", response_model=FilterTried)
async def test_content_filters(
    caller: Admin, body: FilterTrial, transactions: InSplitTransactions, host: TheHost
) -> FilterTried:
    """Returns the effect of the active filters on a text. Stores nothing."""
    return await service.try_out(transactions, host.ports, body)


@router.get("/{filter_id}", response_model=ContentFilter)
async def read_content_filter(caller: AdminReader, content_filter: LoadedFilter) -> object:
    """Returns one filter."""
    return content_filter


@router.put("/{filter_id}", response_model=ContentFilter)
async def update_content_filter(
    caller: Admin, content_filter: LoadedFilter, body: ContentFilterUpdate, change: Changing
) -> object:
    """Changes the fields in the body. The change is active when the response arrives."""
    return await service.update(change, content_filter, body)


@router.delete("/{filter_id}", status_code=204)
async def delete_content_filter(caller: Admin, content_filter: LoadedFilter, change: Changing) -> None:
    """Removes a filter."""
    await service.delete(change, content_filter)
