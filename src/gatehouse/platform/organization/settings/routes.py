"""The settings' endpoints (reference 2, Organization settings)."""

from fastapi import APIRouter

from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.organization.settings import service
from gatehouse.platform.organization.settings.schemas import Settings, SettingsUpdate
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.requests import Changing, Session

router = APIRouter(prefix="/api/v1/admin/org/settings", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=Settings)
async def read_settings(caller: AdminReader, tenant: OwnTenant, session: Session) -> Settings:
    """The organization's settings on one page."""
    return await service.shown(session, tenant)


@router.put("", response_model=Settings)
async def update_settings(caller: AdminStepUp, tenant: OwnTenant, body: SettingsUpdate, change: Changing) -> Settings:
    """Changes what is sent; of `feature_flags` too only what is named. All of it, or with an error none."""
    return await service.update(change, tenant, body)
