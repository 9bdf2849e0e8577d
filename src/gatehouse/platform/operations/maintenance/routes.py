"""The maintenance call (reference 3, Health and system)."""

from fastapi import APIRouter

from gatehouse.platform.callers import RESPONSES, OperatorStepUp
from gatehouse.platform.operations.maintenance import service
from gatehouse.platform.operations.maintenance.schemas import MaintenanceState, MaintenanceSwitch
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing

router = APIRouter(prefix="/api/admin/system/maintenance", tags=["System"], responses=RESPONSES)


@router.post("", response_model=MaintenanceState)
async def switch_maintenance(
    caller: OperatorStepUp, body: MaintenanceSwitch, change: Changing, host: TheHost
) -> MaintenanceState:
    """Closes the platform, or opens it again. The answer to closing comes when every worker refuses new requests and
    those in progress have ended, or when the time for that is up."""
    return await service.switch(change, host, body)
