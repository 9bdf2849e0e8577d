"""The catalog's part of a tenant's policy."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.catalog import ModelRecord

_QUERY = text(
    "SELECT id, provider, model_id, display_name, is_active, is_default, access, context_window, max_output_tokens,"
    " capabilities, cost_per_input_token, cost_per_output_token, cost_per_cached_input_token,"
    " cost_per_cache_write_token, EXTRACT(EPOCH FROM created_at)::float8 AS created_at"
    " FROM model_configs WHERE tenant_id = :tenant ORDER BY created_at, id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[ModelRecord, ...]:
    """Return the tenant's entries, the oldest first."""
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(ModelRecord(**row._mapping) for row in rows)
