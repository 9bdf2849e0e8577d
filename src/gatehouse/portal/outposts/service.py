"""Registers, renews and revokes outposts."""

from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from gatehouse.foundation.certificates.authority import IssuedCertificate
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.portal import jobs
from gatehouse.portal.change import PortalChange
from gatehouse.portal.identity import OrgId
from gatehouse.portal.keys.authorities import CERTIFICATE_LIFETIME, Authorities
from gatehouse.portal.notifications import table as notifications
from gatehouse.portal.outposts import table
from gatehouse.portal.outposts.jobs import push_trust
from gatehouse.portal.outposts.schemas import NewOutpost, Outpost, OutpostCertified
from gatehouse.portal.outposts.table import CertificateRow, OutpostRow
from gatehouse.portal.settings import PortalSettings

#: Time for which the previous certificate remains valid after a renewal.
RENEWAL_OVERLAP: Final = timedelta(hours=24)
#: Maximum number of outposts of one organization. The platform accepts 20,000 outposts of all organizations together,
#: and one organization must not use all of them.
MAX_OUTPOSTS: Final = 500


class OutpostNotFound(NotFound):
    message = "Outpost not found"


class OutpostNameTaken(Conflict):
    message = "outpost_name: another outpost of the organization has this name."


class TooManyOutposts(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(f"The organization has {limit} outposts, which is the maximum: revoke an unused one first.")


class OutpostRevoked(Conflict):
    message = "The outpost has been revoked: register a new one."


class CertificateIssuer:
    """Issues certificates. `address` is the URL of the portal that the caller has used."""

    def __init__(self, authorities: Authorities, settings: PortalSettings, address: str) -> None:
        self._authorities = authorities
        self._platform = settings.platform_public_url or (settings.platform_url or "").rstrip("/") or None
        self._portal = settings.portal_public_url or address.rstrip("/")

    async def issue(self, outpost_id: UUID, org_id: OrgId) -> tuple[UUID, IssuedCertificate, str]:
        """Returns the id of the issuing authority, the certificate, and the chain. Raises `NoAuthority`."""
        authority_id, authority, chain = await self._authorities.issuing()
        return authority_id, authority.issue(str(outpost_id), str(org_id), lifetime=CERTIFICATE_LIFETIME), chain

    def response(self, outpost: OutpostRow, issued: IssuedCertificate, chain: str) -> OutpostCertified:
        return OutpostCertified(
            outpost=Outpost.model_validate(outpost),
            client_cert=issued.certificate,
            client_key=issued.key,
            ca_chain=chain,
            platform_url=self._platform,
            bundle_url=self._platform and f"{self._platform}/v1/outposts/policy-bundle",
            heartbeat_url=f"{self._portal}/v1/outposts/heartbeat",
        )


async def register(change: PortalChange, issuer: CertificateIssuer, new: NewOutpost) -> OutpostCertified:
    """Registers an outpost and issues its certificate. Raises `TooManyOutposts`, `OutpostNameTaken`, `NoAuthority`."""
    assert change.org_id is not None
    await require_room(
        change.session,
        ScopedLock.OUTPOSTS,
        table.count_outposts,
        limit=MAX_OUTPOSTS,
        full=partial(TooManyOutposts, MAX_OUTPOSTS),
    )
    outpost_id, now = new_id(), utc_now()
    authority_id, issued, chain = await issuer.issue(outpost_id, change.org_id)
    outpost = OutpostRow(
        id=outpost_id,
        org_id=change.org_id,
        **new.model_dump(),
        cert_serial=issued.serial,
        cert_issued_at=issued.issued_at,
        cert_expires_at=issued.expires_at,
        last_seen_at=None,
        reported={},
        created_at=now,
        updated_at=now,
        revoked_at=None,
    )
    change.session.add(outpost)
    with unique(OutpostNameTaken):
        await change.session.flush()
    change.session.add(_certificate_row(outpost, authority_id))
    change.record("outpost.registered", "outpost", outpost_id, outpost_name=new.outpost_name, serial=issued.serial)
    await jobs.queue(change.session, push_trust, None)
    return issuer.response(outpost, issued, chain)


async def renew(change: PortalChange, issuer: CertificateIssuer, outpost: OutpostRow) -> OutpostCertified:
    """Issues a new certificate for an outpost. Raises `OutpostRevoked`, `NoAuthority`."""
    if outpost.revoked_at is not None:
        raise OutpostRevoked
    authority_id, issued, chain = await issuer.issue(outpost.id, outpost.org_id)
    await table.limit_certificates(change.session, outpost.id, utc_now() + RENEWAL_OVERLAP)
    previous = outpost.cert_serial
    outpost.assign(
        {"cert_serial": issued.serial, "cert_issued_at": issued.issued_at, "cert_expires_at": issued.expires_at}
    )
    change.session.add(_certificate_row(outpost, authority_id))
    change.record("outpost.renewed", "outpost", outpost.id, serial=issued.serial, previous=previous)
    await jobs.queue(change.session, push_trust, None)
    return issuer.response(outpost, issued, chain)


async def revoke(change: PortalChange, outpost: OutpostRow) -> None:
    """Revokes an outpost. Raises `OutpostRevoked`."""
    if outpost.revoked_at is not None:
        raise OutpostRevoked
    outpost.assign({"revoked_at": utc_now()})
    await notifications.resolve(change.session, outpost.org_id, "outpost_stale", outpost.id)
    change.record(
        "outpost.revoked", "outpost", outpost.id, outpost_name=outpost.outpost_name, serial=outpost.cert_serial
    )
    await jobs.queue(change.session, push_trust, None)


def _certificate_row(outpost: OutpostRow, authority_id: UUID) -> CertificateRow:
    return CertificateRow(
        serial=outpost.cert_serial,
        org_id=outpost.org_id,
        outpost_id=outpost.id,
        authority_id=authority_id,
        issued_at=outpost.cert_issued_at,
        good_until=outpost.cert_expires_at,
    )
