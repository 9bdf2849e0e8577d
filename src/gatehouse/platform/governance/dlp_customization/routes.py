"""Endpoints of suppressions and custom patterns."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.http.lists import (
    OptionalWindow,
    optional_window,
    search_parameter,
    sort_parameter,
    windowed,
)
from gatehouse.platform.governance.dlp_customization import service
from gatehouse.platform.governance.dlp_customization.schemas import (
    CustomPattern,
    CustomPatternUpdate,
    NewCustomPattern,
    NewSuppression,
    Suppression,
)
from gatehouse.platform.governance.dlp_customization.service import CustomPatternNotFound, SuppressionNotFound
from gatehouse.platform.governance.dlp_customization.table import (
    CustomPatternRow,
    SuppressionRow,
    patterns_query,
    suppressions_query,
)
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded

router = APIRouter(prefix="/api/admin/dlp-rules", tags=["DLP"], responses=RESPONSES)

LoadedSuppression = Annotated[SuppressionRow, Depends(loaded(SuppressionRow, "suppression_id", SuppressionNotFound))]
LoadedPattern = Annotated[CustomPatternRow, Depends(loaded(CustomPatternRow, "pattern_id", CustomPatternNotFound))]

SuppressionSort = Literal["pattern_id", "-pattern_id", "created_at", "-created_at"]
PatternSort = Literal["name", "-name", "entity_type", "-entity_type", "created_at", "-created_at"]
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]

_CONFLICT: dict[int | str, dict[str, str]] = {
    409: {"description": "The suppression or pattern already exists, or there is the maximum number."}
}


@router.get("/suppressions", response_model=list[Suppression])
async def list_suppressions(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Annotated[str | None, search_parameter("Part of the pattern's id or the reason.")] = None,
    sort: Annotated[SuppressionSort, sort_parameter()] = "created_at",
) -> object:
    """Lists the built-in patterns that the organization has suppressed, by default all of them, oldest suppression
    first. The header `X-Total-Count` is the number of all matching suppressions."""
    return await windowed(session, suppressions_query(search=search, sort=sort), window, response)


@router.post("/suppressions", status_code=201, response_model=Suppression, responses=_CONFLICT)
async def suppress_pattern(caller: Admin, body: NewSuppression, change: Changing) -> object:
    """Suppresses a built-in pattern for the organization. Patterns that a compliance bundle requires stay active."""
    return await service.suppress(change, body)


@router.delete("/suppressions/{suppression_id}", status_code=204)
async def delete_suppression(caller: Admin, suppression: LoadedSuppression, change: Changing) -> None:
    """Removes a suppression. The pattern is active again."""
    await service.unsuppress(change, suppression)


@router.get("/custom-patterns", response_model=list[CustomPattern])
async def list_custom_patterns(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Annotated[str | None, search_parameter("Part of the name or the entity type.")] = None,
    enabled: Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")] = None,
    sort: Annotated[PatternSort, sort_parameter()] = "created_at",
) -> object:
    """Lists the organization's custom patterns, by default all of them, oldest first. The header `X-Total-Count` is the
    number of all matching patterns."""
    query = patterns_query(search=search, enabled=enabled, sort=sort)
    return await windowed(session, query, window, response)


@router.post("/custom-patterns", status_code=201, response_model=CustomPattern, responses=_CONFLICT)
async def create_custom_pattern(caller: Admin, body: NewCustomPattern, change: Changing) -> object:
    """Adds a pattern. For an invalid pattern the response is 400 with the reason and the position, and nothing is
    stored."""
    return await service.create(change, body)


@router.put("/custom-patterns/{pattern_id}", response_model=CustomPattern, responses=_CONFLICT)
async def update_custom_pattern(
    caller: Admin, pattern: LoadedPattern, body: CustomPatternUpdate, change: Changing
) -> object:
    """Changes the fields in the body. The change is active when the response arrives."""
    return await service.update(change, pattern, body)


@router.delete("/custom-patterns/{pattern_id}", status_code=204)
async def delete_custom_pattern(caller: Admin, pattern: LoadedPattern, change: Changing) -> None:
    """Removes a pattern permanently."""
    await service.delete(change, pattern)
