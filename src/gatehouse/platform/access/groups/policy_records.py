"""The groups' overrides in a tenant's policy."""

from collections import defaultdict
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.governance import OverrideAction

_QUERY = text("SELECT group_id, entity_type, action FROM group_dlp_overrides WHERE tenant_id = :tenant ORDER BY 1, 2")


async def overrides(session: AsyncSession, tenant_id: TenantId) -> dict[UUID, dict[str, OverrideAction]]:
    """Return the overrides by group and entity type."""
    actions: dict[UUID, dict[str, OverrideAction]] = defaultdict(dict)
    for row in await session.execute(_QUERY, {"tenant": tenant_id}):
        actions[row.group_id][row.entity_type] = row.action
    return dict(actions)
