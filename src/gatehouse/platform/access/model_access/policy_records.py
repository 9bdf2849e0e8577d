"""Loads the model access rules of a tenant's policy."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.model_access import ModelAccessRecord

_QUERY = text("SELECT group_id, model_id, access_type FROM group_model_access WHERE tenant_id = :tenant ORDER BY 1, 2")


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[ModelAccessRecord, ...]:
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(
        ModelAccessRecord(group_id=row.group_id, model=row.model_id, access_type=row.access_type) for row in rows
    )
