"""The registry's endpoints (reference 3, Endpoints, Model registry)."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from gatehouse.foundation.http.variants import RequestVariant
from gatehouse.platform.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.governance.model_registry import service
from gatehouse.platform.governance.model_registry.errors import RegisteredModelNotFound
from gatehouse.platform.governance.model_registry.schemas import (
    RegisteredModel,
    RegisteredModelsPage,
    RegisteredModelsPageB,
    RegisteredModelUpdate,
)
from gatehouse.platform.governance.model_registry.table import RegisteredModelRow, page_of_models
from gatehouse.platform.governance.model_registry.variants import (
    ListWindow,
    NewModelBody,
    OnceAnId,
    TheFilters,
    items_name,
)
from gatehouse.platform.requests import Changing, Session, loaded

router = APIRouter(prefix="/api/admin/models", tags=["Model registry"], responses=RESPONSES)

LoadedModel = Annotated[
    RegisteredModelRow, Depends(loaded(RegisteredModelRow, "registered_model_id", RegisteredModelNotFound))
]


@router.get("", response_model=RegisteredModelsPage | RegisteredModelsPageB)
async def list_registered_models(
    caller: AdminReader, variant: RequestVariant, window: ListWindow, filters: TheFilters, session: Session
) -> dict[str, Any]:
    """The registry, newest first."""
    rows, total = await page_of_models(session, window, filters)
    return window.envelope(items_name(variant), await service.shown(session, rows, variant), total)


@router.post("", status_code=201, response_model=RegisteredModel)
async def register_model(
    caller: Admin, variant: RequestVariant, once_an_id: OnceAnId, body: NewModelBody, change: Changing
) -> RegisteredModel:
    """Adds a model, as `draft` or `unclassified`. It need not be in the catalog, nor be there to be called."""
    row = await service.create(change, body, once_an_id=once_an_id)
    return (await service.shown(change.session, [row], variant))[0]


@router.get("/{registered_model_id}", response_model=RegisteredModel)
async def read_registered_model(
    caller: AdminReader, variant: RequestVariant, model: LoadedModel, session: Session
) -> RegisteredModel:
    """One entry."""
    return (await service.shown(session, [model], variant))[0]


@router.put("/{registered_model_id}", response_model=RegisteredModel)
async def update_registered_model(
    caller: Admin, variant: RequestVariant, model: LoadedModel, body: RegisteredModelUpdate, change: Changing
) -> RegisteredModel:
    """Changes what the body names. `validation_status` moves one permitted step; model and provider are fixed."""
    row = await service.update(change, model, body)
    return (await service.shown(change.session, [row], variant))[0]


@router.delete("/{registered_model_id}", status_code=204)
async def delete_registered_model(caller: Admin, model: LoadedModel, change: Changing) -> None:
    """Removes an entry: the model counts as unregistered from the answer on. Records keep its name."""
    await service.delete(change, model)
