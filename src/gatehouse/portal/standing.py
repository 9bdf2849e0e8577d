"""Whether a token's organization, and whose token it is, still stand as they did when it was issued.

What is read is kept for half a second. A change made here is known here at once (`forget`), and to other processes when
that has passed: no news has to reach them, so none can be lost.
"""

from collections import OrderedDict
from time import monotonic
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import text

from gatehouse.foundation.storage.database import Database
from gatehouse.portal.identity import Caller, OrgId
from gatehouse.portal.provider import Person

KEPT_SECONDS: Final = 0.5
_MOST: Final = 10_000

_READ: Final = text(
    "SELECT o.status, o.plan_tier, EXTRACT(EPOCH FROM o.tokens_revoked_before)::float8 AS revoked_before,"
    " EXISTS (SELECT FROM revoked_tokens r WHERE r.org_id = o.id AND r.jti = :jti) AS revoked, m.role"
    " FROM organizations o LEFT JOIN members m ON m.org_id = o.id AND m.id = :member WHERE o.id = :org"
)


class Standing(msgspec.Struct, frozen=True):
    """`revoked_before` is Unix time. `role` is the member's as stored; None where there is no such member."""

    active: bool
    plan: str
    revoked_before: float | None
    revoked: bool
    role: str | None


class Standings:
    """One a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: OrderedDict[tuple[OrgId, str, UUID | None], tuple[float, Standing | None]] = OrderedDict()
        #: goes up with each change: what was read before one is not kept after it
        self._changes = 0

    async def of(self, org_id: OrgId, jti: str = "", member_id: UUID | None = None) -> Standing | None:
        """None where there never was such an organization."""
        key = (org_id, jti, member_id)
        found = self._kept.get(key)
        if found is not None and monotonic() - found[0] < KEPT_SECONDS:
            return found[1]
        changes, asked_at = self._changes, monotonic()
        async with self._database.service() as session:
            row = (await session.execute(_READ, {"org": org_id, "jti": jti, "member": member_id})).first()
        standing = None
        if row is not None:
            standing = Standing(row.status == "active", row.plan_tier, row.revoked_before, row.revoked, row.role)
        if changes == self._changes:
            self._kept[key] = (asked_at, standing)
            self._kept.move_to_end(key)
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return standing

    def forget(self) -> None:
        """After the commit of a change to organizations, members or revoked tokens, and before its answer."""
        self._changes += 1
        self._kept.clear()


class CertificateStanding(msgspec.Struct, frozen=True):
    """Whose certificate it is, and whether it may be used."""

    outpost_id: UUID
    org_id: OrgId
    good: bool


_CERTIFICATE: Final = text(
    "SELECT c.outpost_id, c.org_id, p.revoked_at IS NULL AND c.good_until > now() AS good"
    " FROM outpost_certificates c JOIN outposts p ON p.id = c.outpost_id WHERE c.serial = :serial"
)


async def of_certificate(database: Database, serial: int) -> CertificateStanding | None:
    """None where none with this serial number was issued. Nothing of it is kept: an outpost asks twice a minute."""
    async with database.service() as session:
        row = (await session.execute(_CERTIFICATE, {"serial": f"{serial:x}"})).first()
    return None if row is None else CertificateStanding(row.outpost_id, row.org_id, row.good)


_PERSON: Final = text("SELECT platform_sub, platform_tenant_id, email FROM members WHERE id = :id")


async def person_of(database: Database, caller: Caller) -> Person | None:
    """Who a member is on the platform, by the address of the membership; None for a token of the admin key's, and while
    it is not known."""
    if caller.member_id is None:
        return None
    async with database.service() as session:
        row = (await session.execute(_PERSON, {"id": caller.member_id})).first()
    if row is None or row.platform_sub is None:
        return None
    return Person(row.platform_sub, row.platform_tenant_id, row.email, caller.signed_in_at, session=caller)
