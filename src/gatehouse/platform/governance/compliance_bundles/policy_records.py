"""Reads compliance bundles for a tenant's policy."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.governance import BundleRecord

_QUERY = text(
    "SELECT id, name, seed_rule_mappings, regulatory_framework, version FROM compliance_bundles"
    " WHERE tenant_id = :tenant AND enabled AND state = 'active' ORDER BY name, id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[BundleRecord, ...]:
    """Return the bundles that apply: those that are active and enabled."""
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(
        BundleRecord(
            id=row.id,
            name=row.name,
            entity_types=tuple(row.seed_rule_mappings),
            framework=row.regulatory_framework,
            version=row.version,
        )
        for row in rows
    )
