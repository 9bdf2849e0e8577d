"""Endpoints of the sampling setting."""

from fastapi import APIRouter

from gatehouse.platform.organization.dlp_sampling import schemas, service
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing

router = APIRouter(prefix="/api/v1/admin/org/dlp-sampling", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=schemas.DlpSampling)
async def read_dlp_sampling(caller: AdminReader, tenant: OwnTenant) -> object:
    """Returns the share of requests that are stored as samples, and the retention time in days."""
    return service.to_shown(tenant)


@router.put("", response_model=schemas.DlpSampling)
async def update_dlp_sampling(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.DlpSamplingUpdate, change: Changing
) -> object:
    """Changes the fields in the body. When the response arrives, the change is active on every worker. Existing
    samples are kept until their retention time ends or they are deleted."""
    service.update(change, tenant, body.sent())
    return service.to_shown(tenant)
