"""The policies of the session's tenant."""

from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.sign_in_policies import MfaPolicy, SessionPolicy, read_mfa_policy, read_session_policy

__all__ = ["last_run", "mfa_policy", "read_mfa_policy", "read_session_policy", "session_policy"]

_LAST_RUN = text("SELECT at, status, rows FROM archive_runs WHERE tenant_id = :tenant")
_POLICIES = text("SELECT session_policy, mfa_policy FROM tenants WHERE id = :tenant")


async def session_policy(session: AsyncSession) -> SessionPolicy:
    return read_session_policy(await _stored(session, "session_policy"))


async def mfa_policy(session: AsyncSession) -> MfaPolicy:
    return read_mfa_policy(await _stored(session, "mfa_policy"))


async def last_run(session: AsyncSession) -> tuple[datetime, str, int] | None:
    """When the archiver ran last, how it ended (`success`, `failed`, `held`), and how many rows went to the archive."""
    row = (await session.execute(_LAST_RUN, {"tenant": session.info["tenant_id"]})).one_or_none()
    return None if row is None else (row.at, row.status, row.rows)


async def _stored(session: AsyncSession, column: str) -> dict[str, Any]:
    row = (await session.execute(_POLICIES, {"tenant": session.info["tenant_id"]})).one()
    stored: dict[str, Any] = getattr(row, column)
    return stored
