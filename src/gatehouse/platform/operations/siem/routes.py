"""The SIEM endpoints (decisions 5)."""

from typing import Annotated

from fastapi import APIRouter, Depends

from gatehouse.platform.callers import RESPONSES, Admin, AdminReader, AdminStepUp
from gatehouse.platform.operations.siem import service
from gatehouse.platform.operations.siem.schemas import Siem, SiemUpdate, Tested
from gatehouse.platform.operations.siem.sending import Senders
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, InParts, Session

router = APIRouter(prefix="/api/v1/admin/siem", tags=["SIEM"], responses=RESPONSES)


async def _checked(host: TheHost, body: SiemUpdate) -> SiemUpdate:
    await service.check(host.receivers, body)
    return body


# Checked before a session is opened: looking names up takes its time, and must not hold a row meanwhile.
Checked = Annotated[SiemUpdate, Depends(_checked)]


@router.get("", response_model=Siem)
async def read_siem(caller: AdminReader, session: Session) -> Siem:
    """Where records are forwarded to, without its secrets, and how far that has come."""
    return await service.shown(session)


@router.put("", response_model=Siem)
async def update_siem(caller: AdminStepUp, body: Checked, change: Changing, host: TheHost) -> Siem:
    """Changes what is sent. Enabled, records from now on are forwarded as soon as the feature flag
    `audit_log_streaming` is on. Disabled, what waits is not sent any more."""
    await service.update(change, host.sealer, body)
    return await service.shown(change.session)


@router.post("/test", response_model=Tested, responses={409: {"description": "Nothing was set up yet."}})
async def test_siem(caller: Admin, parts: InParts, host: TheHost) -> Tested:
    """Sends one event now and says whether the receiver took it."""
    return await service.test(parts, Senders(host.receivers, host.sealer, host.settings.gatehouse_home))
