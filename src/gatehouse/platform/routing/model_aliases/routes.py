"""Endpoints of model aliases (docs/deployments.md)."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.http.lists import OffsetWindow, offset_window, search_parameter, sort_parameter
from gatehouse.platform.records.filters import From, To
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.platform.routing.model_aliases import comparing, service
from gatehouse.platform.routing.model_aliases.schemas import (
    Comparison,
    ModelAlias,
    ModelAliasList,
    ModelAliasUpdate,
    NewModelAlias,
    Sort,
)
from gatehouse.platform.routing.model_aliases.service import ModelAliasNotFound
from gatehouse.platform.routing.model_aliases.table import ModelAliasRow

router = APIRouter(prefix="/api/v1/admin/model-aliases", tags=["Model aliases"], responses=RESPONSES)

LoadedModelAlias = Annotated[ModelAliasRow, Depends(loaded(ModelAliasRow, "model_alias_id", ModelAliasNotFound))]
Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]
_CONFLICT: Final[dict[int | str, dict[str, Any]]] = {409: {"description": "The name is in use, or there are too many."}}


@router.get("", response_model=ModelAliasList)
async def list_model_aliases(
    caller: AdminReader,
    session: Session,
    window: Window,
    *,
    search: Annotated[str | None, search_parameter("Part of the name or the description.")] = None,
    enabled: Annotated[bool | None, Query(description="True: only enabled aliases. False: only disabled ones.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "name",
) -> object:
    """Lists the organization's model aliases, by default in the order of their names."""
    return await service.list_page(session, window, search=search, enabled=enabled, sort=sort)


@router.post("", status_code=201, response_model=ModelAlias, responses=_CONFLICT)
async def create_model_alias(caller: Admin, body: NewModelAlias, change: Changing) -> object:
    """Creates a model alias. It is active on every worker when the response is sent."""
    return await service.create(change, body)


@router.get("/{model_alias_id}", response_model=ModelAlias)
async def read_model_alias(caller: AdminReader, row: LoadedModelAlias) -> object:
    """Returns one model alias."""
    return row


@router.put("/{model_alias_id}", response_model=ModelAlias)
async def update_model_alias(caller: Admin, row: LoadedModelAlias, body: ModelAliasUpdate, change: Changing) -> object:
    """Changes the fields in the body. `deployments` replaces all deployments. Null clears `description`."""
    return await service.update(change, row, body)


@router.delete("/{model_alias_id}", status_code=204)
async def delete_model_alias(caller: Admin, row: LoadedModelAlias, change: Changing) -> None:
    """Deletes a model alias. Its name then means the catalog's model with this id. If there is none, requests with it
    are refused."""
    await service.delete(change, row)


@router.get("/{model_alias_id}/comparison", response_model=Comparison)
async def compare_deployments(
    caller: AdminReader, row: LoadedModelAlias, session: Session, *, since: From = None, until: To = None
) -> Comparison:
    """Compares the deployments of an alias in a period of at most 31 days: requests, errors, cost and latency. The
    default is the last day."""
    return await comparing.comparison(session, row, since, until)
