"""The legal hold's endpoints (decisions 5, Retention)."""

from fastapi import APIRouter

from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.organization.legal_hold import service
from gatehouse.platform.organization.legal_hold.schemas import LegalHold, NewLegalHold
from gatehouse.platform.organization.legal_hold.table import legal_hold
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.requests import Changing, Session

router = APIRouter(prefix="/api/v1/admin/retention/legal-hold", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=LegalHold)
async def read_legal_hold(caller: AdminReader, tenant: OwnTenant, session: Session) -> LegalHold:
    """Whether the organization's records are kept whatever its retention policy says, and why."""
    return service.shown(await legal_hold(session))


@router.put("", response_model=LegalHold)
async def set_legal_hold(caller: AdminStepUp, tenant: OwnTenant, body: NewLegalHold, change: Changing) -> LegalHold:
    """Sets it, or changes its reason. From the answer on no record leaves the database or the archive."""
    return await service.put(change, tenant, body.reason)


@router.delete("", status_code=204, responses={404: {"description": "There is no legal hold."}})
async def release_legal_hold(caller: AdminStepUp, tenant: OwnTenant, change: Changing) -> None:
    """The retention policy is in force again; what it has waited with is done at the archiver's next run."""
    await service.release(change, tenant)
