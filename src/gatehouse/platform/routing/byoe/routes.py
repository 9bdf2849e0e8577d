"""The byoe endpoints (docs/providers.md).

`PATCH /api/admin/providers/byoe/config` changes the config of a provider named `byoe`. The route for this is registered
before the routes of this module.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from gatehouse.platform.request.callers import RESPONSES, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.byoe import service
from gatehouse.platform.routing.byoe.schemas import ByoeUpdate, NewByoe
from gatehouse.platform.routing.providers.routes import LoadedProvider
from gatehouse.platform.routing.providers.schemas import Provider
from gatehouse.platform.routing.providers.table import ProviderRow, the_provider

router = APIRouter(tags=["Providers"], responses=RESPONSES)

_BASE = "/api/admin/providers/byoe"


async def _loaded(session: Session, provider_id: Annotated[str, Path(alias="id")]) -> ProviderRow:
    return await the_provider(session, provider_id, lock=True)


LoadedEndpoint = Annotated[ProviderRow, Depends(_loaded)]


@router.post(_BASE, status_code=201, response_model=Provider)
async def create_byoe(caller: AdminStepUp, body: NewByoe, change: Changing, host: TheHost) -> Provider:
    """Adds an endpoint of your own with its models. Calls that start after the response can use them."""
    return await service.create(change, host.sealer, body, host.receivers.guard)


@router.patch(_BASE + "/{id}", response_model=Provider)
async def update_byoe(
    caller: AdminStepUp, endpoint: LoadedEndpoint, body: ByoeUpdate, change: Changing, host: TheHost
) -> Provider:
    """Changes an endpoint. With a `base_url` of another host, `api_key` must be sent again, or null."""
    return await service.update(change, host.sealer, endpoint, body, host.receivers.guard)


@router.delete("/api/admin/providers/{provider_id}", status_code=204)
async def delete_provider(caller: AdminStepUp, provider: LoadedProvider, change: Changing) -> None:
    """Removes a provider of any kind with its credentials, and deactivates its models. Calls that start after the
    response cannot use them.

    Fallback chains that name its models stay, but are invalid until they are changed. Records and kill switches stay.
    """
    await service.delete(change, provider)


@router.delete(_BASE + "/{id}", status_code=204)
async def delete_byoe(caller: AdminStepUp, endpoint: LoadedEndpoint, change: Changing) -> None:
    """Removes an endpoint, `byoe` or OpenAI-compatible, and deactivates its models.

    Fallback chains that name them stay, but are invalid until they are changed.
    """
    await service.delete_own(change, endpoint)
