"""The feature flags' endpoints (reference 2, Organization settings)."""

from typing import Annotated

from fastapi import APIRouter, Depends

from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.organization.feature_flags import service
from gatehouse.platform.organization.feature_flags.schemas import Flag, FlagUpdate
from gatehouse.platform.organization.feature_flags.table import complete
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.requests import Changing

router = APIRouter(prefix="/api/v1/admin/org/feature-flags", tags=["Organization"], responses=RESPONSES)


def _known(flag_name: str) -> str:
    return service.known(flag_name)


@router.get("", response_model=dict[str, bool])
async def list_feature_flags(caller: AdminReader, tenant: OwnTenant) -> dict[str, bool]:
    """Every flag, with its default where nobody has set it."""
    return complete(tenant.feature_flags)


@router.patch("/{flag_name}", response_model=Flag, responses={404: {"description": "There is no such flag."}})
async def switch_feature_flag(
    caller: AdminStepUp,
    name: Annotated[str, Depends(_known)],
    tenant: OwnTenant,
    body: FlagUpdate,
    change: Changing,
) -> Flag:
    """Switches a flag. It is in force on every worker when the answer comes."""
    return service.switch(change, tenant, name, body.enabled)
