"""The endpoint of DLP events (docs/records.md)."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.http.lists import PageWindow, page_window
from gatehouse.platform.records.by_day import RecordFilters
from gatehouse.platform.records.dlp_events.schemas import Direction, DlpEventsPage, Status
from gatehouse.platform.records.dlp_events.table import EVENTS
from gatehouse.platform.records.filters import From, To
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
    since: From = None,
    until: To = None,
) -> RecordFilters:
    kind = {"status": status, "entity_type": entity, "direction": direction, "user_id": user_id}
    return RecordFilters({name: value for name, value in kind.items() if value is not None}, since, until)


@router.get("/api/v1/dlp/events", response_model=DlpEventsPage)
async def list_dlp_events(
    caller: DlpReader, session: Session, window: Window, filters: Annotated[RecordFilters, Depends(_filters)]
) -> dict[str, Any]:
    """Lists the findings of detection in the organization's requests, newest first."""
    rows, total = await EVENTS.page(session, window, filters)
    return window.envelope("items", rows, total)
