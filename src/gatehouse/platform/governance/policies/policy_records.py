"""Reads policy rules for a tenant's policy."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.governance import PolicyRuleRecord

_QUERY = text(
    "SELECT id, name, priority, condition, action, route_to, terminal, message FROM policies"
    " WHERE tenant_id = :tenant AND enabled ORDER BY priority, created_at, id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[PolicyRuleRecord, ...]:
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(PolicyRuleRecord(**row._mapping) for row in rows)
