"""The import's endpoint, for the portal (decisions 8, Config import)."""

from fastapi import APIRouter

from gatehouse.platform.access.tenants.routes import LoadedTenant
from gatehouse.platform.callers import RESPONSES, PlatformClient
from gatehouse.platform.governance.config_import import service
from gatehouse.platform.governance.config_import.schemas import ConfigImport, ConfigImported
from gatehouse.platform.governance.dlp_fields import TheRecognisers
from gatehouse.platform.requests import Changing

router = APIRouter(prefix="/v1/platform/tenants/{tenant_id}/config-import", tags=["Tenants"], responses=RESPONSES)


@router.post("", response_model=ConfigImported)
async def import_config(
    caller: PlatformClient, tenant: LoadedTenant, body: ConfigImport, change: Changing, recognisers: TheRecognisers
) -> ConfigImported:
    """Takes an outpost's configuration over into an organization. Names that are there stay as they are, so once more
    changes nothing; what is not good is named in `errors`, the rest is in force when the answer is there."""
    return await service.take_over(change, tenant, body, recognisers)
