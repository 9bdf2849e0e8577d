"""Endpoints of the legal hold."""

from fastapi import APIRouter

from gatehouse.platform.organization.legal_hold import service
from gatehouse.platform.organization.legal_hold.schemas import LegalHold, NewLegalHold
from gatehouse.platform.organization.legal_hold.table import legal_hold
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session

router = APIRouter(prefix="/api/v1/admin/retention/legal-hold", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=LegalHold)
async def read_legal_hold(caller: AdminReader, tenant: OwnTenant, session: Session) -> LegalHold:
    """Returns the legal hold and its reason. A legal hold overrides the retention policy."""
    return service.to_shown(await legal_hold(session))


@router.put("", response_model=LegalHold)
async def set_legal_hold(caller: AdminStepUp, tenant: OwnTenant, body: NewLegalHold, change: Changing) -> LegalHold:
    """Sets the legal hold, or changes its reason. Once the response is sent, no record is removed."""
    return await service.put(change, tenant, body.reason)


@router.delete("", status_code=204, responses={404: {"description": "No legal hold is set."}})
async def release_legal_hold(caller: AdminStepUp, tenant: OwnTenant, change: Changing) -> None:
    """Releases the legal hold. The archiver applies the retention policy again at its next run."""
    await service.release(change, tenant)
