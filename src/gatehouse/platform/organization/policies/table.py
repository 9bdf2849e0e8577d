"""The policies of the session's tenant."""

from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.organization.policies.values import MfaPolicy, SessionPolicy

_POLICIES = text("SELECT session_policy, mfa_policy FROM tenants WHERE id = :tenant")


async def session_policy(session: AsyncSession) -> SessionPolicy:
    return read_session_policy(await _stored(session, "session_policy"))


async def mfa_policy(session: AsyncSession) -> MfaPolicy:
    return read_mfa_policy(await _stored(session, "mfa_policy"))


def read_session_policy(stored: dict[str, Any]) -> SessionPolicy:
    return msgspec.convert(stored, SessionPolicy)


def read_mfa_policy(stored: dict[str, Any]) -> MfaPolicy:
    return msgspec.convert(stored, MfaPolicy)


async def _stored(session: AsyncSession, column: str) -> dict[str, Any]:
    row = (await session.execute(_POLICIES, {"tenant": session.info["tenant_id"]})).one()
    stored: dict[str, Any] = getattr(row, column)
    return stored
