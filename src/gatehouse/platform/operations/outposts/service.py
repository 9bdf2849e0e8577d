"""Sets which outposts the platform trusts, and checks whether an organization may have outposts."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509 import Certificate

from gatehouse.foundation.certificates.x5c import parse_authority
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Forbidden, PayloadTooLarge, Unprocessable
from gatehouse.foundation.http.lists import PageWindow
from gatehouse.foundation.identity import Caller
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.outpost_records import Stored, Upload
from gatehouse.platform.operations.outposts import table
from gatehouse.platform.operations.outposts.schemas import (
    MAX_RECORDS,
    Authority,
    ListedOutpost,
    NewTrust,
    Records,
    Sort,
    Trust,
)
from gatehouse.platform.operations.outposts.table import OutpostTrustRow
from gatehouse.platform.request.ports import Host

_FLAG: Final = "outpost_enabled"


class OutpostsDisabled(Forbidden):
    code = "outposts_disabled"
    message = "The organization's feature flag outpost_enabled is off."


class TooManyRecords(PayloadTooLarge):
    code = "too_many_records"

    def __init__(self, limit: int) -> None:
        super().__init__(f"entries: one upload can have at most {limit} records.")


async def enabled(caller: Caller, host: Host) -> None:
    """Check that the feature flag of the caller's organization is on. Raises `OutpostsDisabled`."""
    if not await _is_enabled(caller, host):
        raise OutpostsDisabled


async def _is_enabled(caller: Caller, host: Host) -> bool:
    assert caller.tenant_id is not None
    policy = await host.ports.policies.current(caller.tenant_id)
    return policy.feature_flags.get(_FLAG, False)


async def listed(caller: Caller, host: Host, window: PageWindow, sort: Sort) -> dict[str, Any]:
    """Return a page of the outposts of the caller's organization."""
    assert caller.tenant_id is not None
    async with host.database.service() as session:
        rows, total = await table.listed(session, caller.tenant_id, window, sort)
    outposts = [ListedOutpost.model_validate(row) for row in rows]
    return {"enabled": await _is_enabled(caller, host), **window.envelope("outposts", outposts, total)}


async def trust(change: Change, new: NewTrust) -> Trust:
    """Replace the stored trust with `new`. Raises `Unprocessable`."""
    authorities = _checked(new)
    row = await table.find_for_change(change.session)
    stored: dict[str, Any] = {
        "ca_certificates": [pem.strip() for pem in new.ca_certificates],
        "organizations": {str(org.org_id): str(org.tenant_id) for org in new.organizations},
        "outposts": [
            {
                "outpost_id": str(outpost.outpost_id),
                "org_id": str(outpost.org_id),
                "serials": [*map(_normalized, outpost.serials)],
            }
            for outpost in new.outposts
        ],
    }
    before: dict[str, Any] = {name: getattr(row, name) for name in stored} if row is not None else {}
    if row is None:
        row = OutpostTrustRow(key=table.KEY, **stored, updated_at=utc_now())
        change.session.add(row)
    if stored != before:
        row.assign(stored)
        serials_before, serials_after = _serials(before.get("outposts", ())), _serials(row.outposts)
        change.record(
            "outpost_trust.changed",
            "outpost_trust",
            authorities=[_fingerprint(certificate) for certificate in authorities],
            organizations=len(new.organizations),
            outposts=len(new.outposts),
            serials_added=len(serials_after - serials_before),
            serials_removed=len(serials_before - serials_after),
        )
        # The change is urgent, so that no worker accepts a revoked certificate after the response.
        change.touch("outpost_trust", "-", urgent=True)
    tenants = [organization.tenant_id for organization in new.organizations]
    unknown = set(tenants) - await table.known_tenants(change.session, tenants)
    return Trust(
        ca_certificates=[
            Authority(sha256=_fingerprint(certificate), not_after=certificate.not_valid_after_utc)
            for certificate in authorities
        ],
        organizations=len(new.organizations),
        outposts=len(new.outposts),
        serials=len(_serials(row.outposts)),
        unknown_tenants=sorted(unknown),
        updated_at=row.updated_at,
    )


def _checked(new: NewTrust) -> list[Certificate]:
    """Return the certificates of the authorities. Raises `Unprocessable` with every field that is malformed, repeated,
    or refers to an organization that is not in the body."""
    faults, authorities = [], []
    for number, pem in enumerate(new.ca_certificates):
        try:
            authorities.append(parse_authority(pem))
        except ValueError as error:
            faults.append(FieldFault(f"ca_certificates.{number}", str(error)))
    faults += _duplicates([("org_id", organization.org_id) for organization in new.organizations], "organizations")
    faults += _duplicates([("outpost_id", outpost.outpost_id) for outpost in new.outposts], "outposts")
    org_ids, serials = {organization.org_id for organization in new.organizations}, set[str]()
    for number, outpost in enumerate(new.outposts):
        if outpost.org_id not in org_ids:
            faults.append(FieldFault(f"outposts.{number}.org_id", "is not among the organizations"))
        for place, serial in enumerate(map(_normalized, outpost.serials)):
            if serial in serials:
                faults.append(FieldFault(f"outposts.{number}.serials.{place}", "comes twice"))
            serials.add(serial)
    if faults:
        raise Unprocessable(faults=faults)
    return authorities


def _duplicates(ids: Sequence[tuple[str, UUID]], field: str) -> list[FieldFault]:
    seen, faults = set[UUID](), []
    for number, (name, value) in enumerate(ids):
        if value in seen:
            faults.append(FieldFault(f"{field}.{number}.{name}", "comes twice"))
        seen.add(value)
    return faults


def _normalized(serial: str) -> str:
    """Return the serial number in lower-case hexadecimal without leading zeros."""
    return f"{int(serial, 16):x}"


def _serials(outposts: Sequence[dict[str, Any]]) -> set[str]:
    return {serial for outpost in outposts for serial in outpost["serials"]}


def _fingerprint(certificate: Certificate) -> str:
    return certificate.fingerprint(SHA256()).hex()


async def store(caller: Caller, host: Host, records: Records) -> Stored:
    """Store the records that an outpost uploads. Raises `OutpostsDisabled`, `TooManyRecords` and `SequenceGap`."""
    await enabled(caller, host)
    if len(records.entries) > MAX_RECORDS:
        raise TooManyRecords(MAX_RECORDS)
    return await host.supply.store(caller, Upload(records.journal_id, records.sequence, records.entries))
