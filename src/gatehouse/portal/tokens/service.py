"""Issues and revokes organization tokens, including those of single sign-on."""

import asyncio
from datetime import datetime, timedelta
from uuid import uuid4

from gatehouse.foundation.clock import Clock, utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.portal.change import PortalChange
from gatehouse.portal.identity import shown_role
from gatehouse.portal.keys.signing import MAX_LIFETIME_SECONDS, Keyring
from gatehouse.portal.members import table as members
from gatehouse.portal.members.table import PortalMemberRow
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.tokens import table
from gatehouse.portal.tokens.schemas import IssuedToken
from gatehouse.portal.tokens.table import RevokedTokenRow


class TokenNotFound(NotFound):
    message = "No token of this organization has this jti."


class AlreadyRevoked(Conflict):
    message = "The token has already been revoked."


async def issue(
    change: PortalChange,
    keys: Keyring,
    clock: Clock,
    org: OrganizationRow,
    *,
    lifetime_seconds: int,
    plan: str | None = None,
    member: PortalMemberRow | None = None,
    signed_in_at: int | None = None,
    family: str | None = None,
) -> IssuedToken:
    """Issues a token of the organization, or of one of its members. `signed_in_at` is the Unix time of the sign-in.
    `family` is the `jti` of the first token in a series of refreshed tokens."""
    # Issue times are whole seconds, so a revocation of all tokens also refuses tokens that are issued later in the same
    # second. Wait until this second has ended.
    if (revoked_before := org.tokens_revoked_before) is not None:
        await asyncio.sleep(max(0.0, int(revoked_before.timestamp()) + 1 - clock.now()))
    jti = str(uuid4())
    claims: dict[str, str | int] = {"sub": str(org.id), "plan": plan or org.plan_tier, "jti": jti}
    if member is not None:
        claims |= {"uid": str(member.id), "role": shown_role(member.role)}
    if signed_in_at is not None:
        claims["auth_time"] = signed_in_at
    if family is not None:
        claims["family"] = family
    token = await keys.sign(claims, lifetime_seconds=lifetime_seconds)
    change.record(
        "token.issued",
        "token",
        jti,
        expires_in=lifetime_seconds,
        member_id=None if member is None else str(member.id),
        **({} if family is None else {"family": family}),
    )
    return IssuedToken(token=token, expires_in=lifetime_seconds, jti=jti)


def revoke_all(change: PortalChange, org: OrganizationRow) -> datetime:
    """Revokes all tokens that have been issued until now, including those of members. Returns the current time."""
    org.tokens_revoked_before = org.updated_at = utc_now()
    change.record("token.all_revoked", "organization", org.id)
    return org.tokens_revoked_before


async def revoke_issued(change: PortalChange, jti: str, reason: str) -> RevokedTokenRow:
    """Revokes a token that the portal has issued for the organization. If the token was refreshed, revokes the newest
    token of its family instead. Raises `TokenNotFound`, `AlreadyRevoked`."""
    # The lock serializes this change with a refresh of the token.
    await members.lock(change.session)
    newest = await table.newest_of_family(change.session, jti)
    if newest is None:
        raise TokenNotFound
    return await revoke(change, newest, reason)


async def revoke(change: PortalChange, jti: str, reason: str, *, expires_at: datetime | None = None) -> RevokedTokenRow:
    """Revokes a token. `expires_at` is the expiry of the token, or None if it is unknown. Raises `AlreadyRevoked`."""
    assert change.org_id is not None
    now = utc_now()
    row = RevokedTokenRow(
        org_id=change.org_id,
        jti=jti,
        reason=reason,
        revoked_at=now,
        expires_at=expires_at or now + timedelta(seconds=MAX_LIFETIME_SECONDS),
    )
    change.session.add(row)
    with unique(AlreadyRevoked):
        await change.session.flush()
    change.record("token.revoked", "token", jti, reason=reason)
    return row
