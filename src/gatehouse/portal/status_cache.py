"""Reads the current status of a token's organization and member, which may have changed since the token was issued.

A status is cached for half a second. A change that this process makes applies immediately (`invalidate`). In other
processes it applies when their cached status expires. So the processes exchange no messages, which could be lost.
"""

from collections import OrderedDict
from time import monotonic
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import text

from gatehouse.foundation.storage.database import Database
from gatehouse.portal.identity import OrgId, PortalCaller
from gatehouse.portal.platform_link.openid_provider import Person

CACHE_SECONDS: Final = 0.5
_MAX_CACHED_STATUSES: Final = 10_000

_READ: Final = text(
    "SELECT o.status, o.plan_tier, EXTRACT(EPOCH FROM o.tokens_revoked_before)::float8 AS revoked_before,"
    " EXISTS (SELECT FROM revoked_tokens r WHERE r.org_id = o.id AND r.jti = :jti) AS revoked, m.role"
    " FROM organizations o LEFT JOIN members m ON m.org_id = o.id AND m.id = :member WHERE o.id = :org"
)


class TokenStatus(msgspec.Struct, frozen=True):
    """The status of a token. Tokens that were issued until the Unix time `revoked_before` are revoked. `role` is the
    stored role of the member, or None if there is no such member."""

    active: bool
    plan: str
    revoked_before: float | None
    revoked: bool
    role: str | None


class TokenStatusCache:
    """The cache of token statuses in one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: OrderedDict[tuple[OrgId, str, UUID | None], tuple[float, TokenStatus | None]] = OrderedDict()
        #: Increases with each change, so that a status that was read before a change is not cached after it.
        self._generation = 0

    async def of(self, org_id: OrgId, jti: str = "", member_id: UUID | None = None) -> TokenStatus | None:
        """Returns the status, or None if the organization never existed."""
        key = (org_id, jti, member_id)
        cached = self._cache.get(key)
        if cached is not None and monotonic() - cached[0] < CACHE_SECONDS:
            return cached[1]
        generation, queried_at = self._generation, monotonic()
        async with self._database.service() as session:
            row = (await session.execute(_READ, {"org": org_id, "jti": jti, "member": member_id})).first()
        status = None
        if row is not None:
            status = TokenStatus(row.status == "active", row.plan_tier, row.revoked_before, row.revoked, row.role)
        if generation == self._generation:
            self._cache[key] = (queried_at, status)
            self._cache.move_to_end(key)
            if len(self._cache) > _MAX_CACHED_STATUSES:
                self._cache.popitem(last=False)
        return status

    def invalidate(self) -> None:
        """Empties the cache. Call this method after the commit of a change to organizations, members or revoked tokens,
        and before the response to the change is sent."""
        self._generation += 1
        self._cache.clear()


class CertificateStanding(msgspec.Struct, frozen=True):
    """The owner of a certificate, and whether it is valid."""

    outpost_id: UUID
    org_id: OrgId
    good: bool


_CERTIFICATE: Final = text(
    "SELECT c.outpost_id, c.org_id, p.revoked_at IS NULL AND c.good_until > now() AS good"
    " FROM outpost_certificates c JOIN outposts p ON p.id = c.outpost_id WHERE c.serial = :serial"
)


async def of_certificate(database: Database, serial: int) -> CertificateStanding | None:
    """Returns the status of the certificate with this serial number, or None if the portal has issued no such
    certificate. The status is not cached, because an outpost calls only twice a minute."""
    async with database.service() as session:
        row = (await session.execute(_CERTIFICATE, {"serial": f"{serial:x}"})).first()
    return None if row is None else CertificateStanding(row.outpost_id, row.org_id, row.good)


_PERSON: Final = text("SELECT platform_sub, platform_tenant_id, email FROM members WHERE id = :id")


async def person_of(database: Database, caller: PortalCaller) -> Person | None:
    """Returns the identity of the calling member on the platform, with the address of the membership. Returns None for
    a token that the admin key has issued, and while the identity is unknown."""
    if caller.member_id is None:
        return None
    async with database.service() as session:
        row = (await session.execute(_PERSON, {"id": caller.member_id})).first()
    if row is None or row.platform_sub is None:
        return None
    return Person(row.platform_sub, row.platform_tenant_id, row.email, caller.signed_in_at, session=caller)
