"""The catalog endpoints (docs/providers.md, Models).

`discover`, `sync` and `bulk` are registered before `{model_config_id}`, which would match their names as ids.
"""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.http.variants import RequestVariant
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    stepped_up,
)
from gatehouse.platform.request.etags import TheVersions
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.model_catalog import discovery, service
from gatehouse.platform.routing.model_catalog.errors import ModelConfigNotFound
from gatehouse.platform.routing.model_catalog.schemas import (
    BulkUpdate,
    DiscoveredModel,
    ModelConfig,
    ModelsPage,
    ModelsPageB,
    ModelUpdate,
    SyncResult,
)
from gatehouse.platform.routing.model_catalog.table import CatalogFilters, ModelConfigRow, find_model, page_of_models
from gatehouse.platform.routing.model_catalog.variants import CatalogWindow, NewModelBody, sync_result
from gatehouse.platform.routing.providers.probe import Prober

router = APIRouter(tags=["Model catalog"], responses=RESPONSES)

_BASE = "/api/admin/models/catalog"

LoadedModel = Annotated[ModelConfigRow, Depends(loaded(ModelConfigRow, "model_config_id", ModelConfigNotFound))]


async def _load_model_config(session: Session, versions: TheVersions, model_config_id: UUID) -> ModelConfigRow:
    row = await find_model(session, model_config_id)
    if row is None:
        raise ModelConfigNotFound
    versions.about(row, "model_config_id")
    return row


#: Not locked: the service locks it, after other rows that must be locked first.
FoundModelConfig = Annotated[ModelConfigRow, Depends(_load_model_config)]

#: PostgreSQL's text holds no NUL.
_Filter = Query(max_length=255, pattern=r"^[^\x00]*$")


async def _filters(
    provider: Annotated[str | None, _Filter] = None,
    is_active: bool | None = None,
    search: Annotated[str | None, _Filter] = None,
) -> CatalogFilters:
    """`search` matches a part of `display_name` or `model_id`, ignoring case."""
    return CatalogFilters(provider, is_active, search)


TheFilters = Annotated[CatalogFilters, Depends(_filters)]


@router.get(_BASE + "/", response_model=ModelsPage | ModelsPageB)
async def list_models(
    caller: AdminReader, session: Session, window: CatalogWindow, filters: TheFilters
) -> dict[str, Any]:
    """Lists the catalog, newest first."""
    rows, total = await page_of_models(session, window, filters)
    return window.envelope("items", [service.shown(row) for row in rows], total)


@router.post(_BASE + "/", status_code=201, response_model=ModelConfig)
async def create_model(caller: Admin, body: NewModelBody, change: Changing) -> ModelConfig:
    """Adds a model. `provider` must be one of the organization's; `provider` and `model_id` together are unique."""
    return service.shown(await service.create(change, body))


@router.get(_BASE + "/discover", response_model=list[DiscoveredModel])
async def discover_models(
    caller: AdminReader, transactions: InSplitTransactions, host: TheHost
) -> list[DiscoveredModel]:
    """Lists the models of the connected providers. Stores nothing; a provider that does not answer is left out."""
    return await discovery.discover(transactions, Prober(host.outbound, host.sealer))


@router.post(_BASE + "/sync", response_model=SyncResult | list[ModelConfig])
async def sync_models(
    caller: Admin, variant: RequestVariant, transactions: InSplitTransactions, host: TheHost
) -> SyncResult | list[ModelConfig]:
    """Adds the discovered models that the catalog lacks, active and without prices. The call is idempotent."""
    discovered = await discovery.list_all(transactions, Prober(host.outbound, host.sealer))
    async with transactions.changing() as change:
        added = [service.shown(row) for row in await discovery.add_missing(change, discovered)]
    return sync_result(variant, added, len(discovered) - len(added))


@router.patch(_BASE + "/bulk", response_model=list[ModelConfig])
async def update_models(caller: Admin, body: BulkUpdate, change: Changing) -> list[ModelConfig]:
    """Activates or deactivates many entries. Unknown ids are ignored; the response lists the entries that exist."""
    return [service.shown(row) for row in await service.set_active(change, body)]


@router.get(_BASE + "/{model_config_id}", response_model=ModelConfig)
async def read_model(caller: AdminReader, model: LoadedModel) -> ModelConfig:
    """Returns one entry of the catalog."""
    return service.shown(model)


@router.put(_BASE + "/{model_config_id}", response_model=ModelConfig)
async def update_model(
    caller: Admin, model: FoundModelConfig, body: ModelUpdate, change: Changing, versions: TheVersions
) -> ModelConfig:
    """Changes the fields that are sent. They are in force once this is answered."""
    return service.shown(await service.update(change, model, body, locked=versions.require))


@router.delete(_BASE + "/{model_config_id}", status_code=204)
async def delete_model(caller: Admin, model: LoadedModel, change: Changing) -> None:
    """Removes an entry. Once this is answered, it cannot be chosen any more. Conversations keep their copies of it."""
    # Deleting and adding the entry releases its kill switch, which needs a second factor.
    if model.kill_switch_disabled_at is not None:
        stepped_up(caller)
    await service.delete(change, model)
