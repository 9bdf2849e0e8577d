"""The setting's endpoints."""

from fastapi import APIRouter

from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.organization.dlp_sampling import schemas, service
from gatehouse.platform.organization.dlp_sampling.values import read
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.requests import Changing

router = APIRouter(prefix="/api/v1/admin/org/dlp-sampling", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=schemas.DlpSampling)
async def read_dlp_sampling(caller: AdminReader, tenant: OwnTenant) -> object:
    """Whether samples of the organization's requests are kept for trying out DLP rules, and for how long."""
    return read(tenant.dlp_sampling)


@router.put("", response_model=schemas.DlpSampling)
async def update_dlp_sampling(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.DlpSamplingUpdate, change: Changing
) -> object:
    """Changes what the body names. In force on every worker when the answer comes. Samples that are there stay until
    their days are over, or until they are removed."""
    return service.update(change, tenant, body.sent())
