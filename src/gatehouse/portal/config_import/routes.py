"""The endpoint of the import."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Query, Request, UploadFile

from gatehouse.portal.config_import import service
from gatehouse.portal.config_import.schemas import ConfigImported
from gatehouse.portal.host import TheHost
from gatehouse.portal.request.callers import RESPONSES, OrgAdmin

router = APIRouter(prefix="/v1/orgs/{org_id}/config-import", tags=["Config import"], responses=RESPONSES)

DryRun = Annotated[bool, Form(alias="dry_run", description="Only report what would be imported.")]


@router.post(
    "", response_model=ConfigImported, responses={409: {"description": "The organization is not on the platform yet."}}
)
async def import_config(
    caller: OrgAdmin,
    request: Request,
    host: TheHost,
    *,
    file: Annotated[
        UploadFile, File(description="The document of an outpost's GET /admin/config/export; up to 1 MiB.")
    ],
    dry_run_field: DryRun = False,
    dry_run: Annotated[bool, Query(description="The field `dry_run` of the form, as a query parameter.")] = False,
) -> ConfigImported:
    """Imports an outpost's configuration into your organization. Parts whose names exist are not changed, so a repeated
    import changes nothing. Invalid parts are listed in `errors`. The imported parts are active when the response
    arrives."""
    content = await file.read(service.MAX_FILE_BYTES + 1)
    return await service.take_over(request, host, caller, content, dry_run=dry_run or dry_run_field)
