"""The import's endpoint (decisions 8, Config import)."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Query, Request, UploadFile

from gatehouse.portal.callers import RESPONSES, OrgAdmin
from gatehouse.portal.config_import import service
from gatehouse.portal.config_import.schemas import ConfigImported
from gatehouse.portal.host import TheHost

router = APIRouter(prefix="/v1/orgs/{org_id}/config-import", tags=["Config import"], responses=RESPONSES)

DryRun = Annotated[bool, Form(alias="dry_run", description="Only tells what would be done.")]


@router.post(
    "", response_model=ConfigImported, responses={409: {"description": "The organization is not on the platform yet."}}
)
async def import_config(
    caller: OrgAdmin,
    request: Request,
    host: TheHost,
    *,
    file: Annotated[UploadFile, File(description="As an outpost's GET /admin/config/export answers it; up to 1 MiB.")],
    dry_run_field: DryRun = False,
    dry_run: Annotated[bool, Query(description="The same, in the address.")] = False,
) -> ConfigImported:
    """Takes an outpost's configuration over into your organization. Names that are there stay as they are, so once more
    changes nothing; what is not good is named in `errors`, the rest is in force when the answer is there."""
    content = await file.read(service.MOST_BYTES + 1)
    return await service.take_over(request, host, caller, content, dry_run=dry_run or dry_run_field)
