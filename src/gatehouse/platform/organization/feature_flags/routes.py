"""Endpoints of feature flags."""

from typing import Annotated

from fastapi import APIRouter, Depends

from gatehouse.platform.organization.feature_flags import service
from gatehouse.platform.organization.feature_flags.schemas import Flag, FlagUpdate
from gatehouse.platform.organization.feature_flags.table import with_defaults
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing

router = APIRouter(prefix="/api/v1/admin/org/feature-flags", tags=["Organization"], responses=RESPONSES)


async def _existing_flag(flag_name: str) -> str:
    return service.require_flag(flag_name)


@router.get("", response_model=dict[str, bool])
async def list_feature_flags(caller: AdminReader, tenant: OwnTenant) -> dict[str, bool]:
    """Lists all flags. A flag that was never set has its default value."""
    return with_defaults(tenant.feature_flags)


@router.patch(
    "/{flag_name}", response_model=Flag, responses={404: {"description": "There is no feature flag with this name."}}
)
async def switch_feature_flag(
    caller: AdminStepUp,
    name: Annotated[str, Depends(_existing_flag)],
    tenant: OwnTenant,
    body: FlagUpdate,
    change: Changing,
) -> Flag:
    """Sets a flag. When the response arrives, the change is active on every worker."""
    return service.switch(change, tenant, name, body.enabled)
