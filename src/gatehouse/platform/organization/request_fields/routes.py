"""The request fields' endpoints."""

from fastapi import APIRouter

from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.organization.request_fields import schemas, service
from gatehouse.platform.organization.request_fields.values import read
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing

router = APIRouter(prefix="/api/v1/admin/org/request-fields", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=schemas.RequestFields)
async def read_request_fields(caller: AdminReader, tenant: OwnTenant, host: TheHost) -> object:
    """Which fields of model calls the organization allows, and which are refused."""
    return service.shown(read(tenant.request_fields), host.ports.unknown_fields)


@router.put("", response_model=schemas.RequestFields)
async def update_request_fields(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.RequestFieldsUpdate, change: Changing, host: TheHost
) -> object:
    """Replaces the list of allowed fields. In force on every worker when the answer comes."""
    return service.shown(service.update(change, tenant, body.allowed), host.ports.unknown_fields)
