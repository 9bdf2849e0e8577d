"""The rules of outposts: what the portal's word means, and who is supplied."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509 import Certificate

from gatehouse.foundation.certified import authority
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.platform.change import Change
from gatehouse.platform.operations.outposts import table
from gatehouse.platform.operations.outposts.errors import OutpostsDisabled, TooManyRecords
from gatehouse.platform.operations.outposts.schemas import MOST_RECORDS, Authority, NewTrust, Records, Trust
from gatehouse.platform.operations.outposts.table import OutpostTrustRow
from gatehouse.platform.ports import Host
from gatehouse.platform.uploads import Stored, Upload

_FLAG: Final = "outpost_enabled"


async def enabled(caller: Caller, host: Host) -> None:
    """Raises `OutpostsDisabled`."""
    assert caller.tenant_id is not None
    policy = await host.ports.policies.current(caller.tenant_id)
    if not policy.feature_flags.get(_FLAG, False):
        raise OutpostsDisabled


async def trust(change: Change, new: NewTrust) -> Trust:
    """Takes the portal's word in place of what it said before. Raises `Unprocessable`."""
    authorities = _checked(new)
    row = await table.find_for_change(change.session)
    stored: dict[str, Any] = {
        "ca_certificates": [pem.strip() for pem in new.ca_certificates],
        "organizations": {str(each.org_id): str(each.tenant_id) for each in new.organizations},
        "outposts": [
            {"outpost_id": str(each.outpost_id), "org_id": str(each.org_id), "serials": [*map(_plain, each.serials)]}
            for each in new.outposts
        ],
    }
    before: dict[str, Any] = {name: getattr(row, name) for name in stored} if row is not None else {}
    if row is None:
        row = OutpostTrustRow(key=table.KEY, **stored, updated_at=utc_now())
        change.session.add(row)
    if stored != before:
        for name, value in stored.items():
            setattr(row, name, value)
        row.updated_at = utc_now()
        was, now = _serials(before.get("outposts", ())), _serials(row.outposts)
        change.record(
            "outpost_trust.changed",
            "outpost_trust",
            authorities=[_fingerprint(each) for each in authorities],
            organizations=len(new.organizations),
            outposts=len(new.outposts),
            serials_added=len(now - was),
            serials_removed=len(was - now),
        )
        # A revoked certificate opens nothing on any worker from the answer on.
        change.touch("outpost_trust", "-", urgent=True)
    tenants = [each.tenant_id for each in new.organizations]
    unknown = set(tenants) - await table.known_tenants(change.session, tenants)
    return Trust(
        ca_certificates=[
            Authority(sha256=_fingerprint(each), not_after=each.not_valid_after_utc) for each in authorities
        ],
        organizations=len(new.organizations),
        outposts=len(new.outposts),
        serials=len(_serials(row.outposts)),
        unknown_tenants=sorted(unknown),
        updated_at=row.updated_at,
    )


def _checked(new: NewTrust) -> list[Certificate]:
    """The authorities' certificates. Raises `Unprocessable`, naming each field that is wrong by itself or by others."""
    faults, authorities = [], []
    for number, pem in enumerate(new.ca_certificates):
        try:
            authorities.append(authority(pem))
        except ValueError as error:
            faults.append(FieldFault(f"ca_certificates.{number}", str(error)))
    faults += _twice([("org_id", each.org_id) for each in new.organizations], "organizations")
    faults += _twice([("outpost_id", each.outpost_id) for each in new.outposts], "outposts")
    known, serials = {each.org_id for each in new.organizations}, set[str]()
    for number, outpost in enumerate(new.outposts):
        if outpost.org_id not in known:
            faults.append(FieldFault(f"outposts.{number}.org_id", "is not among the organizations"))
        for place, serial in enumerate(map(_plain, outpost.serials)):
            if serial in serials:
                faults.append(FieldFault(f"outposts.{number}.serials.{place}", "comes twice"))
            serials.add(serial)
    if faults:
        raise Unprocessable(faults=faults)
    return authorities


def _twice(ids: Sequence[tuple[str, UUID]], field: str) -> list[FieldFault]:
    seen, faults = set[UUID](), []
    for number, (name, each) in enumerate(ids):
        if each in seen:
            faults.append(FieldFault(f"{field}.{number}.{name}", "comes twice"))
        seen.add(each)
    return faults


def _plain(serial: str) -> str:
    """As one number is written in one way."""
    return f"{int(serial, 16):x}"


def _serials(outposts: Sequence[dict[str, Any]]) -> set[str]:
    return {serial for each in outposts for serial in each["serials"]}


def _fingerprint(certificate: Certificate) -> str:
    return certificate.fingerprint(SHA256()).hex()


async def store(caller: Caller, host: Host, records: Records) -> Stored:
    """Raises `OutpostsDisabled`, `TooManyRecords`, `SequenceGap`."""
    await enabled(caller, host)
    if len(records.entries) > MOST_RECORDS:
        raise TooManyRecords(MOST_RECORDS)
    return await host.supply.store(caller, Upload(records.journal_id, records.sequence, records.entries))
