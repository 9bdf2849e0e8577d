"""Endpoints of the IP allowlist."""

from fastapi import APIRouter

from gatehouse.platform.organization.ip_allowlist import schemas, service
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing

router = APIRouter(prefix="/api/v1/admin/org/ip-allowlist", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=schemas.IpAllowlist)
async def read_ip_allowlist(caller: AdminReader, tenant: OwnTenant) -> object:
    """Returns the addresses from which the organization's credentials are accepted."""
    return service.to_shown(tenant)


@router.put(
    "",
    response_model=schemas.IpAllowlist,
    responses={400: {"description": "`caller_address_excluded`: the new list would lock you out."}},
)
async def update_ip_allowlist(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.IpAllowlistUpdate, change: Changing
) -> object:
    """Changes the fields in the body. When the response arrives, the change is active on every worker. If `enabled`
    is false, the list is kept and not enforced."""
    service.update(change, tenant, body.sent())
    return service.to_shown(tenant)
