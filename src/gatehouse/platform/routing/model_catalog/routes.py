"""The catalog endpoints (docs/providers.md, Models).

`discover`, `sync` and `bulk` are registered before `{model_config_id}`, which would match their names as ids.
"""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from gatehouse.administration.etags import TheVersions
from gatehouse.foundation.http.lists import sort_parameter
from gatehouse.foundation.http.variants import RequestVariant
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    stepped_up,
)
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.model_catalog import discovery, service
from gatehouse.platform.routing.model_catalog.schemas import (
    BulkUpdate,
    DiscoveredModel,
    ModelConfig,
    ModelsPage,
    ModelsPageB,
    ModelUpdate,
    Sort,
    SyncResult,
)
from gatehouse.platform.routing.model_catalog.service import ModelConfigNotFound
from gatehouse.platform.routing.model_catalog.table import CatalogFilters, ModelConfigRow, find_model, page_of_models
from gatehouse.platform.routing.model_catalog.variants import CatalogWindow, NewModelBody, sync_result
from gatehouse.platform.routing.providers.probe import Prober

router = APIRouter(tags=["Model catalog"], responses=RESPONSES)

_BASE = "/api/admin/models/catalog"

#: The row is locked if the request can change it.
LockedModelConfig = Annotated[ModelConfigRow, Depends(loaded(ModelConfigRow, "model_config_id", ModelConfigNotFound))]


async def _load_model_config(session: Session, versions: TheVersions, model_config_id: UUID) -> ModelConfigRow:
    row = await find_model(session, model_config_id)
    if row is None:
        raise ModelConfigNotFound
    versions.about(row, "model_config_id")
    return row


#: The row is not locked. The service locks it after other rows that must be locked first.
UnlockedModelConfig = Annotated[ModelConfigRow, Depends(_load_model_config)]

#: The filters exclude NUL, which a `text` value of PostgreSQL cannot contain.
_Filter = Query(max_length=255, pattern=r"^[^\x00]*$")


async def _filters(
    provider: Annotated[str | None, _Filter] = None,
    is_active: bool | None = None,
    search: Annotated[str | None, _Filter] = None,
) -> CatalogFilters:
    """Return the filters of the list. `search` matches a part of `display_name` or `model_id`, ignoring case."""
    return CatalogFilters(provider, is_active, search)


TheFilters = Annotated[CatalogFilters, Depends(_filters)]


@router.get(_BASE + "/", response_model=ModelsPage | ModelsPageB)
async def list_models(
    caller: AdminReader,
    session: Session,
    window: CatalogWindow,
    filters: TheFilters,
    *,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
) -> dict[str, Any]:
    """Lists the catalog, by default newest first."""
    rows, total = await page_of_models(session, window, filters, sort)
    return window.envelope("items", [service.shown(row) for row in rows], total)


@router.post(_BASE + "/", status_code=201, response_model=ModelConfig)
async def create_model(caller: Admin, body: NewModelBody, change: Changing) -> ModelConfig:
    """Adds a model. `provider` must be one of the organization's; `provider` and `model_id` together are unique.

    Limits, capabilities and prices that are not sent are taken from the known models (docs/providers.md)."""
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
    """Adds the discovered models that are not in the catalog, as active entries with the prices of the known models
    (docs/providers.md). The call is idempotent."""
    discovered = await discovery.list_all(transactions, Prober(host.outbound, host.sealer))
    async with transactions.changing() as change:
        added = [service.shown(row) for row in await discovery.add_missing(change, discovered)]
    return sync_result(variant, added, len(discovered) - len(added))


@router.patch(_BASE + "/bulk", response_model=list[ModelConfig])
async def update_models(caller: Admin, body: BulkUpdate, change: Changing) -> list[ModelConfig]:
    """Activates or deactivates many entries. Unknown ids are ignored; the response lists the entries that exist."""
    return [service.shown(row) for row in await service.set_active(change, body)]


@router.get(_BASE + "/{model_config_id}", response_model=ModelConfig)
async def read_model(caller: AdminReader, model: LockedModelConfig) -> ModelConfig:
    """Returns one entry of the catalog."""
    return service.shown(model)


@router.put(_BASE + "/{model_config_id}", response_model=ModelConfig)
async def update_model(
    caller: Admin, model: UnlockedModelConfig, body: ModelUpdate, change: Changing, versions: TheVersions
) -> ModelConfig:
    """Changes the fields that are sent. The changes apply to calls that start after the response."""
    return service.shown(await service.update(change, model, body, locked=versions.require))


@router.delete(_BASE + "/{model_config_id}", status_code=204)
async def delete_model(caller: Admin, model: LockedModelConfig, change: Changing) -> None:
    """Removes an entry. Calls that start after the response cannot use it. Conversations keep their copies."""
    # Releasing a kill switch requires a second factor. To delete the entry and add it again would bypass this.
    if model.kill_switch_disabled_at is not None:
        stepped_up(caller)
    await service.delete(change, model)
