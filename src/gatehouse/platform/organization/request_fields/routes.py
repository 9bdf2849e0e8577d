"""Endpoints of the allowed request fields."""

from fastapi import APIRouter

from gatehouse.platform.organization.request_fields import schemas, service
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/v1/admin/org/request-fields", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=schemas.RequestFields)
async def read_request_fields(caller: AdminReader, tenant: OwnTenant, host: TheHost) -> object:
    """Lists the fields of model calls that the organization allows, and the fields that are refused."""
    return service.to_shown(tenant, host.settings)


@router.put("", response_model=schemas.RequestFields)
async def update_request_fields(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.RequestFieldsUpdate, change: Changing, host: TheHost
) -> object:
    """Replaces the list of allowed fields. When the response arrives, the list is active on every worker."""
    service.update(change, tenant, body.allowed)
    return service.to_shown(tenant, host.settings)
