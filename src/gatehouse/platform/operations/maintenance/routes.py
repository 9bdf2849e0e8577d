"""The maintenance endpoints (docs/operations.md)."""

from fastapi import APIRouter

from gatehouse.platform.operations.maintenance import service
from gatehouse.platform.operations.maintenance.schemas import Maintenance, MaintenanceState, MaintenanceSwitch
from gatehouse.platform.request.callers import RESPONSES, AdminReader, OperatorStepUp
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/admin/system/maintenance", tags=["System"], responses=RESPONSES)


@router.get("", response_model=Maintenance)
async def read_maintenance(caller: AdminReader, session: Session) -> Maintenance:
    """Returns whether maintenance is on, since when it is on, and its message."""
    return await service.current(session)


@router.post("", response_model=MaintenanceState)
async def switch_maintenance(
    caller: OperatorStepUp, body: MaintenanceSwitch, change: Changing, host: TheHost
) -> MaintenanceState:
    """Turns maintenance on or off. Turning it on returns when every worker refuses new requests and all requests in
    progress have ended, or when `drain_timeout_seconds` are over."""
    return await service.switch(change, host, body)
