"""The SIEM endpoints (decisions 5)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from gatehouse.platform.callers import RESPONSES, Admin, AdminReader, AdminStepUp
from gatehouse.platform.operations.siem import service, table
from gatehouse.platform.operations.siem.schemas import Siem, SiemUpdate, Tested
from gatehouse.platform.operations.siem.sending import SealedSenders
from gatehouse.platform.operations.siem.table import SiemTargetRow
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, InParts, Session
from gatehouse.platform.versions import READING, TheVersions

router = APIRouter(prefix="/api/v1/admin/siem", tags=["SIEM"], responses=RESPONSES)


async def _checked(parts: InParts, host: TheHost, body: SiemUpdate) -> SiemUpdate:
    await service.check(parts, host.receivers, body)
    return body


async def _own(request: Request, session: Session, versions: TheVersions) -> SiemTargetRow | None:
    row = await (table.find if request.method in READING else table.find_for_change)(session)
    if row is not None:
        versions.about(row)
    return row


#: The organization's receiver, locked where the request can change it; None before there is one.
OwnSiem = Annotated[SiemTargetRow | None, Depends(_own)]
# Checked before a session is opened: looking names up takes its time, and must not hold a row meanwhile.
Checked = Annotated[SiemUpdate, Depends(_checked)]


@router.get("", response_model=Siem)
async def read_siem(caller: AdminReader, own: OwnSiem, session: Session) -> Siem:
    """Where records are forwarded to, without its secrets, and how far that has come."""
    return await service.shown(session, own)


@router.put("", response_model=Siem)
async def update_siem(caller: AdminStepUp, body: Checked, own: OwnSiem, change: Changing, host: TheHost) -> Siem:
    """Changes what is sent. Enabled, records from now on are forwarded as soon as the feature flag
    `audit_log_streaming` is on. Disabled, what waits is not sent any more."""
    row = await service.update(change, host.sealer, own, body)
    return await service.shown(change.session, row)


@router.post("/test", response_model=Tested, responses={409: {"description": "Nothing was set up yet."}})
async def test_siem(caller: Admin, parts: InParts, host: TheHost) -> Tested:
    """Sends one event now and says whether the receiver took it."""
    return await service.test(parts, SealedSenders(host.receivers, host.sealer, host.settings.gatehouse_home))
