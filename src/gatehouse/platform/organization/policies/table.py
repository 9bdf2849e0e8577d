"""Queries for the policies of the session's tenant."""

import time
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.live.replica import second_factor
from gatehouse.platform.live.replica.second_factor import SecondFactor
from gatehouse.platform.live.replica.sign_in_policies import (
    MfaRules,
    SessionRules,
    read_mfa_policy,
    read_session_policy,
)

__all__ = ["last_run", "mfa_policy", "read_mfa_policy", "read_session_policy", "session_policy"]

_SECOND_FACTOR = text(
    f"SELECT {second_factor.POLICY_COLUMNS} FROM tenants t {second_factor.JOIN} WHERE t.id = :tenant"  # noqa: S608
)
_USER_FACTORS = text(f"SELECT u.created_at, {second_factor.ENROLLED} FROM users u WHERE u.id = :user")  # noqa: S608
_LAST_RUN = text("SELECT at, status, rows FROM archive_runs WHERE tenant_id = :tenant")
_POLICIES = text("SELECT session_policy, mfa_policy FROM tenants WHERE id = :tenant")


async def session_policy(session: AsyncSession) -> SessionRules:
    return read_session_policy(await _stored(session, "session_policy"))


async def mfa_policy(session: AsyncSession) -> MfaRules:
    return read_mfa_policy(await _stored(session, "mfa_policy"))


async def second_factor_in_force(session: AsyncSession) -> SecondFactor:
    """Return the active policy, combined with the configuration entry `mfa_required`."""
    return second_factor.read((await session.execute(_SECOND_FACTOR, {"tenant": session.info["tenant_id"]})).one())


async def level_forced_by(session: AsyncSession) -> Literal["organization", "environment"] | None:
    """Return who requires second factors by the configuration `mfa_required`, or None."""
    row = (await session.execute(_SECOND_FACTOR, {"tenant": session.info["tenant_id"]})).one()
    return second_factor.required_by(row)


async def lacks_second_factor(session: AsyncSession, user_id: UUID) -> bool:
    """Return whether the active policy requires a second factor that this user does not have."""
    policy = await second_factor_in_force(session)
    user = (await session.execute(_USER_FACTORS, {"user": user_id})).one_or_none()
    if user is None:
        return False
    methods = second_factor.enrolled(user)
    return methods.isdisjoint(policy.methods) and policy.asks(methods, user.created_at.timestamp(), time.time())


async def last_run(session: AsyncSession) -> tuple[datetime, str, int] | None:
    """Return the time, the status (`success`, `failed`, `held`) and the number of archived rows of the archiver's last
    run, or None."""
    row = (await session.execute(_LAST_RUN, {"tenant": session.info["tenant_id"]})).one_or_none()
    return None if row is None else (row.at, row.status, row.rows)


async def _stored(session: AsyncSession, column: str) -> dict[str, Any]:
    row = (await session.execute(_POLICIES, {"tenant": session.info["tenant_id"]})).one()
    stored: dict[str, Any] = getattr(row, column)
    return stored
