"""Reads content filters for a tenant's policy."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.governance import FilterRecord

_QUERY = text(
    "SELECT id, name, filter_type, config, priority, group_id FROM content_filters"
    " WHERE tenant_id = :tenant AND enabled ORDER BY priority, created_at, id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[FilterRecord, ...]:
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(
        FilterRecord(
            id=row.id,
            name=row.name,
            filter_type=row.filter_type,
            priority=row.priority,
            group_id=row.group_id,
            keywords=tuple(row.config.get("keywords") or ()),
            topics=tuple(row.config.get("topics") or ()),
            threshold=row.config.get("threshold", 0.5),
            instruction=row.config.get("instruction"),
        )
        for row in rows
    )
