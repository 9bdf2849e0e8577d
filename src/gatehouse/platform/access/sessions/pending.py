"""Sign-ins that lack the second factor still: the password was right, and the caller holds an `mfa_token`.

    pending -> signed in    the second factor, or a first one enrolled, within ten minutes
    pending -> void         five wrong ones, or the time

Who is asked is said here, below the family that judges second factors.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import LargeBinary, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change
from gatehouse.platform.live import second_factor
from gatehouse.platform.live.second_factor import SecondFactor

LIFETIME: Final = timedelta(minutes=10)
#: wrong second factors after which the token is void
MOST_WRONG: Final = 5


class SecondFactorNeeded(Unauthenticated):
    """The password was right. `extra` holds what goes on from here: `mfa_token`, `methods`, `enrollment_required`,
    `expires_in` (seconds)."""

    code = "mfa_required"
    message = "A second factor is needed: POST /api/auth/mfa/verify with mfa_token."
    form = "error_message"


_ENROLMENT_NEEDED: Final = (
    "A second factor is needed, and you have none: enrol one with mfa_token, at POST /api/auth/mfa/totp or"
    " POST /api/auth/mfa/webauthn/register/begin."
)


class PendingLoginRow(TenantRow):
    __tablename__ = "pending_logins"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    user_id: Mapped[UUID]
    amr: Mapped[list[str]] = mapped_column(JSONB)
    enrolling: Mapped[bool]
    wrong: Mapped[int]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class Standing(msgspec.Struct, frozen=True):
    """What a user has, and what their organization asks of them, by the database: the replica may be a moment behind.

    `usable` are the enrolled methods that the policy allows, in the order in which they are offered.
    """

    policy: SecondFactor
    enrolled: frozenset[str]
    usable: list[str]
    #: whether a sign-in with a password needs more
    asked: bool
    #: until when it goes without, where that ends
    due: datetime | None


_POLICY = text(
    f"SELECT {second_factor.COLUMNS} FROM tenants t {second_factor.JOIN} WHERE t.id = :tenant"  # noqa: S608
)
_METHODS = text(
    f"SELECT {second_factor.ENROLLED},"  # noqa: S608
    " EXISTS (SELECT FROM mfa_recovery_codes WHERE user_id = :user AND used_at IS NULL) AS recovery"
)
_OWNER = text(
    "SELECT p.tenant_id, p.user_id FROM pending_logins p"
    " JOIN tenants t ON t.id = p.tenant_id AND t.deleted_at IS NULL WHERE p.digest = :digest AND p.expires_at > now()"
)


async def standing(session: AsyncSession, user: UserRow) -> Standing:
    policy = second_factor.read((await session.execute(_POLICY, {"tenant": user.tenant_id})).one())
    found = (await session.execute(_METHODS, {"user": user.id})).one()
    enrolled = second_factor.enrolled(found)
    usable = sorted(enrolled & policy.methods, reverse=True)
    if usable and found.recovery:
        usable.append("recovery")
    created, now = user.created_at.timestamp(), utc_now()
    due = None if usable else policy.due(created)
    return Standing(
        policy,
        enrolled,
        usable,
        policy.asks(enrolled, created, now.timestamp()),
        None if due is None else datetime.fromtimestamp(due, now.tzinfo),
    )


async def begin(change: Change, user: UserRow, stands: Standing, *, amr: list[str]) -> SecondFactorNeeded:
    """To be raised once the change is committed."""
    minted, now = tokens.mint_token("mfa_"), utc_now()
    row = PendingLoginRow(
        digest=minted.digest,
        tenant_id=user.tenant_id,
        user_id=user.id,
        amr=amr,
        enrolling=not stands.usable,
        wrong=0,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    change.session.add(row)
    change.record("login.mfa_required", "user", user.id, enrollment_required=row.enrolling)
    allowed: dict[str, Any] = {"methods": stands.usable or sorted(stands.policy.methods)}
    return SecondFactorNeeded(
        _ENROLMENT_NEEDED if row.enrolling else None,
        mfa_token=minted.plaintext,
        **allowed,
        enrollment_required=row.enrolling,
        expires_in=int(LIFETIME.total_seconds()),
    )


async def owner(session: AsyncSession, token: str) -> tuple[TenantId, UUID] | None:
    """Tenant and user of a token that has not expired. As the service role."""
    row = (await session.execute(_OWNER, {"digest": tokens.digest(token)})).first()
    return None if row is None else (TenantId(row.tenant_id), row.user_id)


async def locked(session: AsyncSession, token: str) -> PendingLoginRow | None:
    """Of two that come with one token at once the second finds what the first has left."""
    row = await session.get(PendingLoginRow, tokens.digest(token), with_for_update=True)
    return row if row is not None and row.expires_at > utc_now() else None


async def went_wrong(session: AsyncSession, row: PendingLoginRow) -> None:
    row.wrong += 1
    if row.wrong >= MOST_WRONG:
        await session.delete(row)
