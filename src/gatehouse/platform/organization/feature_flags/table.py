"""The default values of feature flags, and the values stored in the tenant's row."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.organization.tenants.table import TenantRecord

#: All flags with their default values.
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


def with_defaults(stored: Mapping[str, bool]) -> dict[str, bool]:
    """Return all flags. A flag has its stored value, or else its default value."""
    return {name: stored.get(name, default) for name, default in DEFAULTS.items()}


async def flags(session: AsyncSession) -> dict[str, bool]:
    """Return all flags of the session's tenant."""
    stored = await session.scalar(
        select(TenantRecord.feature_flags).where(TenantRecord.id == session.info["tenant_id"])
    )
    return with_defaults(stored or {})


async def flag(session: AsyncSession, name: str) -> bool:
    return (await flags(session))[name]
