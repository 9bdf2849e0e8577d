"""The endpoints of outposts."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response

from gatehouse.foundation.http.lists import OptionalWindow, optional_window, windowed
from gatehouse.portal.host import TheHost
from gatehouse.portal.notifications import table as notifications
from gatehouse.portal.outposts import service, table
from gatehouse.portal.outposts.schemas import Heartbeat, NewHeartbeat, NewOutpost, Outpost, OutpostCertified
from gatehouse.portal.outposts.service import CertificateIssuer, OutpostNotFound
from gatehouse.portal.outposts.table import OutpostRow
from gatehouse.portal.request.callers import (
    RESPONSES,
    AdminKey,
    KeyOrOrgAdmin,
    KeyOrOrgMember,
    OutpostCaller,
)
from gatehouse.portal.request.injected import Changing, Session, loaded

router = APIRouter(prefix="/v1", tags=["Outposts"], responses=RESPONSES)

_PATH = "/orgs/{org_id}/outposts"
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]
LoadedOutpost = Annotated[OutpostRow, Depends(loaded(OutpostRow, "outpost_id", OutpostNotFound))]


async def _certificate_issuer(request: Request, host: TheHost) -> CertificateIssuer:
    return CertificateIssuer(host.authorities, host.settings, str(request.base_url))


TheCertificateIssuer = Annotated[CertificateIssuer, Depends(_certificate_issuer)]


@router.post(
    _PATH,
    status_code=201,
    response_model=OutpostCertified,
    responses={409: {"description": "Another outpost of the organization has the name, or it has 500 outposts."}},
)
async def register_outpost(
    caller: AdminKey, body: NewOutpost, issuer: TheCertificateIssuer, change: Changing
) -> OutpostCertified:
    """Registers an outpost and issues its certificate. The private key is shown once. The certificate is valid for 90
    days, and the platform accepts it about a second later."""
    return await service.register(change, issuer, body)


@router.get(_PATH, response_model=list[Outpost])
async def list_outposts(caller: KeyOrOrgMember, session: Session, window: Window, response: Response) -> object:
    """Returns the organization's outposts, including revoked ones, by default all of them, the oldest first. The header
    `X-Total-Count` is their number, regardless of `limit` and `offset`."""
    return await windowed(session, table.all_outposts(), window, response)


@router.get(_PATH + "/{outpost_id}", response_model=Outpost)
async def show_outpost(caller: KeyOrOrgMember, outpost: LoadedOutpost) -> object:
    """Returns one outpost."""
    return outpost


@router.delete(
    _PATH + "/{outpost_id}", status_code=204, responses={409: {"description": "The outpost has already been revoked."}}
)
async def revoke_outpost(caller: KeyOrOrgAdmin, outpost: LoadedOutpost, change: Changing) -> None:
    """Revokes an outpost permanently. The portal refuses it after this response, and the platform refuses it about a
    second later. The policy that the outpost still has expires within seven days."""
    await service.revoke(change, outpost)


@router.post(
    _PATH + "/{outpost_id}/renew",
    response_model=OutpostCertified,
    responses={409: {"description": "The outpost has been revoked."}},
)
async def renew_outpost(
    caller: KeyOrOrgAdmin, outpost: LoadedOutpost, issuer: TheCertificateIssuer, change: Changing
) -> OutpostCertified:
    """Issues a new certificate with a new private key, which is shown once. The previous certificate remains valid for
    24 hours."""
    return await service.renew(change, issuer, outpost)


@router.post("/outposts/heartbeat", response_model=Heartbeat)
async def take_heartbeat(caller: OutpostCaller, session: Session, body: NewHeartbeat) -> Heartbeat:
    """Reports that an outpost is running. After five minutes without a heartbeat the outpost is `stale`, and its
    organization is notified."""
    assert caller.org_id is not None
    outpost = await table.record_heartbeat(session, UUID(caller.id), body.model_dump(exclude_none=True))
    await notifications.resolve(session, caller.org_id, "outpost_stale", outpost.id)
    await session.commit()
    assert outpost.last_seen_at is not None
    return Heartbeat(
        outpost_id=outpost.id,
        status=outpost.status,
        received_at=outpost.last_seen_at,
        cert_serial=outpost.cert_serial,
        cert_expires_at=outpost.cert_expires_at,
    )
