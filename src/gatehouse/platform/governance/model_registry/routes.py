"""Endpoints of the model registry."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from gatehouse.foundation.http.lists import sort_parameter
from gatehouse.foundation.http.variants import RequestVariant
from gatehouse.platform.governance.model_registry import discovery, evidence, inventory, service
from gatehouse.platform.governance.model_registry.errors import RegisteredModelNotFound
from gatehouse.platform.governance.model_registry.schemas import (
    Discovered,
    Evidence,
    RegisteredModel,
    RegisteredModelsPage,
    RegisteredModelsPageB,
    RegisteredModelUpdate,
    Sort,
)
from gatehouse.platform.governance.model_registry.table import RegisteredModelRow, page_of_models
from gatehouse.platform.governance.model_registry.variants import (
    DiscoveryBody,
    Format,
    InventoryFilters,
    ListWindow,
    NewModelBody,
    TheFilters,
    UniqueModelId,
    items_name,
)
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded

router = APIRouter(tags=["Model registry"], responses=RESPONSES)

_BASE = "/api/admin/models"

LoadedModel = Annotated[
    RegisteredModelRow, Depends(loaded(RegisteredModelRow, "registered_model_id", RegisteredModelNotFound))
]


@router.get(_BASE, response_model=RegisteredModelsPage | RegisteredModelsPageB)
async def list_registered_models(
    caller: AdminReader,
    variant: RequestVariant,
    window: ListWindow,
    filters: TheFilters,
    session: Session,
    *,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
) -> dict[str, Any]:
    """Lists the entries of the registry, by default newest first."""
    rows, total = await page_of_models(session, window, filters, sort)
    return window.envelope(items_name(variant), await service.with_usage(session, rows, variant), total)


@router.post(_BASE, status_code=201, response_model=RegisteredModel)
async def register_model(
    caller: Admin, variant: RequestVariant, unique_model_id: UniqueModelId, body: NewModelBody, change: Changing
) -> RegisteredModel:
    """Adds a model with the status `draft` or `unclassified`. The model need not be in the catalog or callable."""
    row = await service.create(change, body, unique_model_id=unique_model_id)
    return (await service.with_usage(change.session, [row], variant))[0]


@router.post(_BASE + "/discover", response_model=Discovered)
async def register_discovered_models(caller: Admin, body: DiscoveryBody, change: Changing) -> Discovered:
    """Adds a draft for every called model that is not in the registry. `dry_run` only lists them."""
    return await discovery.discover(change, body)


@router.get(
    "/api/admin/model-inventory-export",
    response_model=list[RegisteredModel],
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def export_inventory(
    caller: AdminReader, variant: RequestVariant, format: Format, filters: InventoryFilters, session: Session
) -> Response:
    """Exports the registry, optionally filtered, as JSON or CSV, newest first."""
    file = await inventory.export(session, filters, variant, format)
    headers = {} if file.filename is None else {"Content-Disposition": f'attachment; filename="{file.filename}"'}
    return Response(file.content, media_type=file.media_type, headers=headers)


@router.get(_BASE + "/{registered_model_id}", response_model=RegisteredModel)
async def read_registered_model(
    caller: AdminReader, variant: RequestVariant, model: LoadedModel, session: Session
) -> RegisteredModel:
    """Returns one entry."""
    return (await service.with_usage(session, [model], variant))[0]


@router.put(_BASE + "/{registered_model_id}", response_model=RegisteredModel)
async def update_registered_model(
    caller: Admin, variant: RequestVariant, model: LoadedModel, body: RegisteredModelUpdate, change: Changing
) -> RegisteredModel:
    """Changes the fields in the body. `validation_status` changes by one permitted transition. `model_id` and
    `provider` cannot change."""
    row = await service.update(change, model, body)
    return (await service.with_usage(change.session, [row], variant))[0]


@router.delete(_BASE + "/{registered_model_id}", status_code=204)
async def delete_registered_model(caller: Admin, model: LoadedModel, change: Changing) -> None:
    """Removes an entry. The model is unregistered when the response arrives. Earlier records keep the model's name."""
    await service.delete(change, model)


@router.get(_BASE + "/{registered_model_id}/evidence", response_model=Evidence)
async def read_evidence(caller: AdminReader, variant: RequestVariant, model: LoadedModel, session: Session) -> Evidence:
    """Returns the evidence for a review: the entry's history as audit events with their hashes, decisions about the
    model, usage by month, and incidents."""
    return await evidence.evidence(session, model, variant)
