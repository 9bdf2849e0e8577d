"""Pending sign-ins: the password was right, the second factor is missing, and the caller has an `mfa_token` to
continue.

    pending -> signed in    a second factor is verified, or a first one is enrolled, within ten minutes
    pending -> void         five wrong factors, or ten minutes

This module decides whether a user needs a second factor. It does not import `access/mfa`, which verifies second factors
and imports this module.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import LargeBinary, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.replica import second_factor
from gatehouse.platform.live.replica.second_factor import SecondFactor

LIFETIME: Final = timedelta(minutes=10)
#: number of wrong second factors that voids the token
MAX_WRONG_FACTORS: Final = 5


class SecondFactorRequired(Unauthenticated):
    """The password was right, and a second factor is required. `extra` contains `mfa_token`, `methods`,
    `enrollment_required` and `expires_in` (seconds)."""

    code = "mfa_required"
    message = "A second factor is required: POST /api/auth/mfa/verify with mfa_token."
    error_format = "error_message"


_ENROLMENT_REQUIRED: Final = (
    "A second factor is required, and you have none: enrol one with mfa_token, at POST /api/auth/mfa/totp or"
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


class FactorRequirements(msgspec.Struct, frozen=True):
    """The second factors that a user has and needs. They are read from the database, because the replica can be out of
    date.

    `usable` are the enrolled methods that the policy allows, in the order in which they are offered.
    """

    policy: SecondFactor
    enrolled: frozenset[str]
    usable: list[str]
    #: whether a sign-in with a password needs a second factor
    required: bool
    #: the future time from which a second factor is required, if any
    deadline: datetime | None


_POLICY = text(
    f"SELECT {second_factor.POLICY_COLUMNS} FROM tenants t {second_factor.JOIN} WHERE t.id = :tenant"  # noqa: S608
)
_METHODS = text(
    f"SELECT {second_factor.ENROLLED},"  # noqa: S608
    " EXISTS (SELECT FROM mfa_recovery_codes WHERE user_id = :user AND used_at IS NULL) AS recovery"
)
_OWNER = text(
    "SELECT p.tenant_id, p.user_id FROM pending_logins p"
    " JOIN tenants t ON t.id = p.tenant_id AND t.deleted_at IS NULL WHERE p.digest = :digest AND p.expires_at > now()"
)


async def factor_requirements(session: AsyncSession, user: UserRow) -> FactorRequirements:
    policy = second_factor.read((await session.execute(_POLICY, {"tenant": user.tenant_id})).one())
    methods = (await session.execute(_METHODS, {"user": user.id})).one()
    enrolled = second_factor.enrolled(methods)
    usable = sorted(enrolled & policy.methods, reverse=True)
    if usable and methods.recovery:
        usable.append("recovery")
    created, now = user.created_at.timestamp(), utc_now()
    deadline = None if usable else policy.due(created)
    return FactorRequirements(
        policy,
        enrolled,
        usable,
        policy.asks(enrolled, created, now.timestamp()),
        None if deadline is None else datetime.fromtimestamp(deadline, now.tzinfo),
    )


async def begin_pending_login(
    change: Change, user: UserRow, requirements: FactorRequirements, *, amr: list[str]
) -> SecondFactorRequired:
    """Store a pending login. Return the error that the caller raises after it has committed the change."""
    minted, now = tokens.mint_token("mfa_"), utc_now()
    row = PendingLoginRow(
        digest=minted.digest,
        tenant_id=user.tenant_id,
        user_id=user.id,
        amr=amr,
        enrolling=not requirements.usable,
        wrong=0,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    change.session.add(row)
    change.record("login.mfa_required", "user", user.id, enrollment_required=row.enrolling)
    allowed_methods: dict[str, Any] = {"methods": requirements.usable or sorted(requirements.policy.methods)}
    return SecondFactorRequired(
        _ENROLMENT_REQUIRED if row.enrolling else None,
        mfa_token=minted.plaintext,
        **allowed_methods,
        enrollment_required=row.enrolling,
        expires_in=int(LIFETIME.total_seconds()),
    )


async def pending_login_owner(session: AsyncSession, token: str) -> tuple[TenantId, UUID] | None:
    """Return tenant and user id of a token that has not expired. Needs the service role."""
    row = (await session.execute(_OWNER, {"digest": tokens.digest(token)})).first()
    return None if row is None else (TenantId(row.tenant_id), row.user_id)


async def lock_pending_login(session: AsyncSession, token: str) -> PendingLoginRow | None:
    """Return the pending login, locked, so that concurrent requests with the same token run one after the other."""
    row = await session.get(PendingLoginRow, tokens.digest(token), with_for_update=True)
    return row if row is not None and row.expires_at > utc_now() else None


async def count_wrong_factor(session: AsyncSession, row: PendingLoginRow) -> None:
    row.wrong += 1
    if row.wrong >= MAX_WRONG_FACTORS:
        await session.delete(row)
