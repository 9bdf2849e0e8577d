"""Endpoints of the system configuration."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from gatehouse.platform.organization.system_config import service
from gatehouse.platform.organization.system_config.keys import ConfigKey
from gatehouse.platform.organization.system_config.schemas import Entry, NewValue
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/admin/config", tags=["System configuration"], responses=RESPONSES)


async def _existing_key(name: Annotated[str, Path(alias="key")]) -> ConfigKey:
    return service.require_key(name)


@router.get("", response_model=list[Entry])
async def list_configuration(caller: AdminReader, tenant: OwnTenant, session: Session, host: TheHost) -> list[Entry]:
    """Lists all entries with the effective values. The `ETag` is the version of the organization."""
    return await service.entries(session, host.settings)


@router.put("/{key}", response_model=Entry, responses={404: {"description": "There is no entry with this key."}})
async def set_configuration(
    caller: AdminStepUp,
    key: Annotated[ConfigKey, Depends(_existing_key)],
    tenant: OwnTenant,
    body: NewValue,
    change: Changing,
) -> Entry:
    """Sets the organization's own value of an entry. When the response arrives, the value is active on every
    worker."""
    return await service.put(change, tenant, key, body.value)
