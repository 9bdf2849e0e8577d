"""The policies of the session's tenant."""

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.sign_in_policies import MfaPolicy, SessionPolicy, read_mfa_policy, read_session_policy

__all__ = ["mfa_policy", "read_mfa_policy", "read_session_policy", "session_policy"]

_POLICIES = text("SELECT session_policy, mfa_policy FROM tenants WHERE id = :tenant")


async def session_policy(session: AsyncSession) -> SessionPolicy:
    return read_session_policy(await _stored(session, "session_policy"))


async def mfa_policy(session: AsyncSession) -> MfaPolicy:
    return read_mfa_policy(await _stored(session, "mfa_policy"))


async def _stored(session: AsyncSession, column: str) -> dict[str, Any]:
    row = (await session.execute(_POLICIES, {"tenant": session.info["tenant_id"]})).one()
    stored: dict[str, Any] = getattr(row, column)
    return stored
