"""The endpoint of DLP events (docs/records.md)."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.http.lists import PageWindow, page_window
from gatehouse.platform.records.by_day import RecordFilters
from gatehouse.platform.records.dlp_events.schemas import Direction, DlpEventsPage, Status
from gatehouse.platform.records.dlp_events.table import DLP_EVENT_RECORDS, DlpEventRow
from gatehouse.platform.records.filters import ExactFilter, From, To
from gatehouse.platform.request.callers import RESPONSES, DlpReader
from gatehouse.platform.request.injected import Session

router = APIRouter(tags=["DLP"], responses=RESPONSES)

Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]


async def _filters(
    *,
    status: Status | None = None,
    entity: Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$", description="An entity type.")] = None,
    direction: Direction | None = None,
    user_id: UUID | None = None,
    request_id: Annotated[ExactFilter, Query(description="Value of the header `X-Request-Id` of the answer.")] = None,
    since: From = None,
    until: To = None,
) -> RecordFilters:
    kind = {"status": status, "entity_type": entity, "direction": direction, "user_id": user_id}
    # A request has few events, which an index finds.
    uncounted = () if request_id is None else (DlpEventRow.request_id == request_id,)
    return RecordFilters({name: value for name, value in kind.items() if value is not None}, since, until, uncounted)


@router.get("/api/v1/dlp/events", response_model=DlpEventsPage)
async def list_dlp_events(
    caller: DlpReader, session: Session, window: Window, filters: Annotated[RecordFilters, Depends(_filters)]
) -> dict[str, Any]:
    """Lists the findings of detection in the organization's requests, newest first."""
    read = DLP_EVENT_RECORDS.page_without_counts if filters.uncounted else DLP_EVENT_RECORDS.page
    rows, total = await read(session, window, filters)
    return window.envelope("items", rows, total)
