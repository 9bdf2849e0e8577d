"""Endpoint of the configuration import, for the portal."""

from fastapi import APIRouter

from gatehouse.platform.access.tenants.routes import LoadedTenant
from gatehouse.platform.governance.config_import import service
from gatehouse.platform.governance.config_import.schemas import ConfigImport, ConfigImported
from gatehouse.platform.governance.dlp_fields import TheRecognisers
from gatehouse.platform.request.callers import RESPONSES, PlatformClient
from gatehouse.platform.request.injected import Changing

router = APIRouter(prefix="/v1/platform/tenants/{tenant_id}/config-import", tags=["Tenants"], responses=RESPONSES)


@router.post("", response_model=ConfigImported)
async def import_config(
    caller: PlatformClient, tenant: LoadedTenant, body: ConfigImport, change: Changing, recognisers: TheRecognisers
) -> ConfigImported:
    """Imports an outpost's configuration into an organization. Existing records of the same name are not changed, so
    the import is idempotent. Invalid records are listed in `errors`. The others are active when the response arrives.
    """
    return await service.import_config(change, tenant, body, recognisers)
