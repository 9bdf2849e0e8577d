"""Reads the configuration for the policy of a tenant."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.organization.system_config.keys import KEYS
from gatehouse.platform.organization.system_config.table import effective_value

_QUERY = text("SELECT key, value FROM system_config WHERE tenant_id = :tenant")


async def records(session: AsyncSession, tenant_id: TenantId) -> dict[str, str]:
    """Return the effective values of all editable keys."""
    stored = {row.key: row.value for row in await session.execute(_QUERY, {"tenant": tenant_id})}
    return {name: effective_value(name, stored.get(name)) for name, key in KEYS.items() if key.editable}
