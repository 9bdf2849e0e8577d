"""The retention policy's endpoints (reference 2, Organization settings)."""

from fastapi import APIRouter

from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.organization.retention_policy import schemas, service
from gatehouse.platform.organization.retention_policy.values import read
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.requests import Changing

router = APIRouter(prefix="/api/v1/admin/retention/policy", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=schemas.RetentionPolicy)
async def read_retention_policy(caller: AdminReader, tenant: OwnTenant) -> object:
    """How long records are kept, and where."""
    return read(tenant.retention_policy)


@router.put("", response_model=schemas.RetentionPolicy)
async def update_retention_policy(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.RetentionPolicyUpdate, change: Changing
) -> object:
    """Changes what is sent."""
    return service.update(change, tenant, body.sent())
