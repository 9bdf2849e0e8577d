"""Builds the response about a user's own second factors."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import Caller
from gatehouse.platform.access.mfa import table
from gatehouse.platform.access.mfa.schemas import Passkey, Status, Totp
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.users.table import UserRow


async def status_of(session: AsyncSession, caller: Caller, verified_at: datetime | None) -> Status:
    user = await session.get_one(UserRow, caller.user_id)
    requirements = await pending.factor_requirements(session, user)
    totp = await table.totp(session, user.id)
    return Status(
        enforcement_level=requirements.policy.level,
        allowed_methods=sorted(requirements.policy.methods),
        totp=None if totp is None else Totp.model_validate(totp),
        passkeys=[Passkey.model_validate(row) for row in await table.passkeys(session, user.id)],
        recovery_codes_left=await table.recovery_codes_left(session, user.id),
        enrollment_deadline=requirements.deadline,
        verified_at=verified_at,
        assertion_ttl_seconds=requirements.policy.ttl_seconds,
    )
