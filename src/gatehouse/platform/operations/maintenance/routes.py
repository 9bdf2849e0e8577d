"""The maintenance endpoints (docs/operations.md)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from gatehouse.administration.etags import READ_METHODS, TheVersions
from gatehouse.platform.operations.maintenance import service, table
from gatehouse.platform.operations.maintenance.schemas import Maintenance, MaintenanceState, MaintenanceSwitch
from gatehouse.platform.operations.maintenance.table import PlatformState
from gatehouse.platform.request.callers import RESPONSES, AdminReader, OperatorStepUp
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/admin/system/maintenance", tags=["System"], responses=RESPONSES)


async def _state(request: Request, session: Session, versions: TheVersions) -> PlatformState:
    row = await (table.find if request.method in READ_METHODS else table.find_for_change)(session)
    versions.about(row)
    return row


#: The state of maintenance. The row is locked if the request can change it.
TheState = Annotated[PlatformState, Depends(_state)]


@router.get("", response_model=Maintenance)
async def read_maintenance(caller: AdminReader, state: TheState) -> Maintenance:
    """Returns whether maintenance is on, when it was enabled, and its message."""
    return service.current(state)


@router.post("", response_model=MaintenanceState)
async def switch_maintenance(
    caller: OperatorStepUp, state: TheState, body: MaintenanceSwitch, change: Changing, host: TheHost
) -> MaintenanceState:
    """Turns maintenance on or off. Turning it on returns when every worker refuses new requests and all requests in
    progress have ended, or when `drain_timeout_seconds` are over."""
    return await service.switch(change, host, state, body)
