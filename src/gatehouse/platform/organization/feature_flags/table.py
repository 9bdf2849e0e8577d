"""Flags live in the tenant's row."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.organization.tenants.table import TenantRecord

#: Every flag there is, with its value where nobody set it.
DEFAULTS: Final[dict[str, bool]] = {
    "dlp_enabled": True,
    "credential_intelligence": True,
    "human_in_loop": False,
    "budget_enforcement": True,
    "outpost_enabled": False,
    "api_key_scoping": False,
    "audit_log_streaming": False,
    "cost_routing": True,
    "block_unreadable": False,
}


def complete(stored: Mapping[str, bool]) -> dict[str, bool]:
    """Every flag there is: as stored, else its default."""
    return {name: stored.get(name, default) for name, default in DEFAULTS.items()}


async def flags(session: AsyncSession) -> dict[str, bool]:
    """The flags of the session's tenant, defaults included."""
    stored = await session.scalar(
        select(TenantRecord.feature_flags).where(TenantRecord.id == session.info["tenant_id"])
    )
    return complete(stored or {})


async def flag(session: AsyncSession, name: str) -> bool:
    return (await flags(session))[name]
