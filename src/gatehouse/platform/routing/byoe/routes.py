"""The byoe endpoints (reference 3, Endpoints, Providers).

`PATCH /api/admin/providers/byoe/config` is the config of a provider called `byoe`: its route comes before these.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from gatehouse.platform.callers import RESPONSES, AdminStepUp
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, Session
from gatehouse.platform.routing.byoe import service
from gatehouse.platform.routing.byoe.schemas import ByoeUpdate, NewByoe
from gatehouse.platform.routing.providers.schemas import Provider
from gatehouse.platform.routing.providers.table import ProviderRow, the_provider

router = APIRouter(tags=["Providers"], responses=RESPONSES)

_BASE = "/api/admin/providers/byoe"


async def _loaded(session: Session, provider_id: Annotated[str, Path(alias="id")]) -> ProviderRow:
    return await the_provider(session, provider_id, lock=True)


LoadedEndpoint = Annotated[ProviderRow, Depends(_loaded)]


@router.post(_BASE, status_code=201, response_model=Provider)
async def create_byoe(caller: AdminStepUp, body: NewByoe, change: Changing, host: TheHost) -> Provider:
    """Adds an endpoint of your own with its models. They answer when this does."""
    return await service.create(change, host.sealer, body, host.receivers.guard)


@router.patch(_BASE + "/{id}", response_model=Provider)
async def update_byoe(
    caller: AdminStepUp, endpoint: LoadedEndpoint, body: ByoeUpdate, change: Changing, host: TheHost
) -> Provider:
    """Changes an endpoint. A `base_url` of another host asks for the `api_key` again, or for its removal."""
    return await service.update(change, host.sealer, endpoint, body, host.receivers.guard)


@router.delete(_BASE + "/{id}", status_code=204)
async def delete_byoe(caller: AdminStepUp, endpoint: LoadedEndpoint, change: Changing) -> None:
    """Removes an endpoint, `byoe` or OpenAI-compatible, and deactivates its models.

    Fallback chains that name them stay, and are not valid until they are changed.
    """
    await service.delete(change, endpoint)
