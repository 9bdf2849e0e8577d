"""Endpoints of suppressions and custom patterns."""

from typing import Annotated

from fastapi import APIRouter, Depends

from gatehouse.platform.governance.dlp_customization import service
from gatehouse.platform.governance.dlp_customization.errors import CustomPatternNotFound, SuppressionNotFound
from gatehouse.platform.governance.dlp_customization.schemas import (
    CustomPattern,
    CustomPatternUpdate,
    NewCustomPattern,
    NewSuppression,
    Suppression,
)
from gatehouse.platform.governance.dlp_customization.table import (
    CustomPatternRow,
    SuppressionRow,
    all_patterns,
    all_suppressions,
)
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded

router = APIRouter(prefix="/api/admin/dlp-rules", tags=["DLP"], responses=RESPONSES)

LoadedSuppression = Annotated[SuppressionRow, Depends(loaded(SuppressionRow, "suppression_id", SuppressionNotFound))]
LoadedPattern = Annotated[CustomPatternRow, Depends(loaded(CustomPatternRow, "pattern_id", CustomPatternNotFound))]

_CONFLICT: dict[int | str, dict[str, str]] = {
    409: {"description": "The suppression or pattern already exists, or there is the maximum number."}
}


@router.get("/suppressions", response_model=list[Suppression])
async def list_suppressions(caller: AdminReader, session: Session) -> object:
    """Lists the built-in patterns that the organization has suppressed."""
    return await all_suppressions(session)


@router.post("/suppressions", status_code=201, response_model=Suppression, responses=_CONFLICT)
async def suppress_pattern(caller: Admin, body: NewSuppression, change: Changing) -> object:
    """Suppresses a built-in pattern for the organization. Patterns that a compliance bundle requires stay in force."""
    return await service.suppress(change, body)


@router.delete("/suppressions/{suppression_id}", status_code=204)
async def delete_suppression(caller: Admin, suppression: LoadedSuppression, change: Changing) -> None:
    """Removes a suppression. The pattern is in force again."""
    await service.unsuppress(change, suppression)


@router.get("/custom-patterns", response_model=list[CustomPattern])
async def list_custom_patterns(caller: AdminReader, session: Session) -> object:
    """Lists the organization's custom patterns, oldest first."""
    return await all_patterns(session)


@router.post("/custom-patterns", status_code=201, response_model=CustomPattern, responses=_CONFLICT)
async def create_custom_pattern(caller: Admin, body: NewCustomPattern, change: Changing) -> object:
    """Adds a pattern. For an invalid pattern the response is 400 with the reason and the position, and nothing is
    stored."""
    return await service.create(change, body)


@router.put("/custom-patterns/{pattern_id}", response_model=CustomPattern, responses=_CONFLICT)
async def update_custom_pattern(
    caller: Admin, pattern: LoadedPattern, body: CustomPatternUpdate, change: Changing
) -> object:
    """Changes the fields in the body. The change is in force when the response arrives."""
    return await service.update(change, pattern, body)


@router.delete("/custom-patterns/{pattern_id}", status_code=204)
async def delete_custom_pattern(caller: Admin, pattern: LoadedPattern, change: Changing) -> None:
    """Removes a pattern permanently."""
    await service.delete(change, pattern)
