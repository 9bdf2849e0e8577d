"""Endpoints of the settings."""

from fastapi import APIRouter

from gatehouse.platform.organization.settings import service
from gatehouse.platform.organization.settings.schemas import Settings, SettingsUpdate
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session

router = APIRouter(prefix="/api/v1/admin/org/settings", tags=["Organization"], responses=RESPONSES)


@router.get("", response_model=Settings)
async def read_settings(caller: AdminReader, tenant: OwnTenant, session: Session) -> Settings:
    """Returns the organization's settings."""
    return await service.to_shown(session, tenant)


@router.put("", response_model=Settings)
async def update_settings(caller: AdminStepUp, tenant: OwnTenant, body: SettingsUpdate, change: Changing) -> Settings:
    """Changes the fields in the body, and the flags in `feature_flags`. If the response is an error, nothing was
    changed."""
    return await service.update(change, tenant, body)
