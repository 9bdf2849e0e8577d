"""The endpoints of SIEM forwarding (docs/siem.md)."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Request

from gatehouse.administration.etags import READ_METHODS, TheVersions
from gatehouse.platform.operations.siem import service, table
from gatehouse.platform.operations.siem.schemas import Siem, SiemUpdate, Tested
from gatehouse.platform.operations.siem.sending import SealedSenders
from gatehouse.platform.operations.siem.service import SiemNotNew
from gatehouse.platform.operations.siem.table import SiemTargetRow
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    AdminStepUp,
)
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/v1/admin/siem", tags=["SIEM"], responses=RESPONSES)


async def _checked(transactions: InSplitTransactions, host: TheHost, body: SiemUpdate) -> SiemUpdate:
    await service.check(transactions, host.receivers, body)
    return body


async def _own(request: Request, session: Session, versions: TheVersions) -> SiemTargetRow | None:
    row = await (table.find if request.method in READ_METHODS else table.find_for_change)(session)
    if row is not None:
        versions.about(row)
    return row


#: The receiver of the organization, or None if none is configured. The row is locked if the request can change it.
OwnSiem = Annotated[SiemTargetRow | None, Depends(_own)]
# The URL is checked before a session is opened, because resolving a name takes time, and no row should be locked
# meanwhile.
Checked = Annotated[SiemUpdate, Depends(_checked)]


@router.get("", response_model=Siem)
async def read_siem(caller: AdminReader, own: OwnSiem, session: Session) -> Siem:
    """Returns the receiver without its secrets, and the state of the forwarding."""
    return await service.shown(session, own)


@router.put("", response_model=Siem)
async def update_siem(
    *,
    caller: AdminStepUp,
    body: Checked,
    own: OwnSiem,
    change: Changing,
    versions: TheVersions,
    host: TheHost,
    if_none_match: Annotated[
        Literal["*"] | None,
        Header(description="`*` sets up the receiver: the request is refused with 412 if there is one."),
    ] = None,
) -> Siem:
    """Changes the fields that are sent. While `enabled` and the feature flag `audit_log_streaming` are on, new records
    are forwarded. Once forwarding is disabled, waiting events are no longer sent."""
    if own is not None and if_none_match is not None:
        raise SiemNotNew
    row = await service.update(change, host.sealer, own, body)
    versions.about(row)
    return await service.shown(change.session, row)


@router.post("/test", response_model=Tested, responses={409: {"description": "No receiver is configured."}})
async def test_siem(caller: Admin, transactions: InSplitTransactions, host: TheHost) -> Tested:
    """Sends one event at once, and returns whether the receiver accepted it."""
    return await service.test(transactions, SealedSenders(host.receivers, host.sealer, host.settings.gatehouse_home))
