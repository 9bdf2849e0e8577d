"""The configuration's endpoints (reference 2, User settings and system configuration)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.organization.system_config import service
from gatehouse.platform.organization.system_config.keys import Key
from gatehouse.platform.organization.system_config.schemas import Entry, NewValue
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, Session

router = APIRouter(prefix="/api/admin/config", tags=["System configuration"], responses=RESPONSES)


def _known(name: Annotated[str, Path(alias="key")]) -> Key:
    return service.known(name)


@router.get("", response_model=list[Entry])
async def list_configuration(caller: AdminReader, session: Session, host: TheHost) -> list[Entry]:
    """Every entry with the value that is in force."""
    return await service.entries(session, host.settings)


@router.put("/{key}", response_model=Entry, responses={404: {"description": "There is no such key."}})
async def set_configuration(
    caller: AdminStepUp, key: Annotated[Key, Depends(_known)], body: NewValue, change: Changing
) -> Entry:
    """Sets the organization's own value, in force on every worker when the answer comes."""
    return await service.put(change, key, body.value)
