"""The providers' part of a tenant's policy."""

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.records import ProviderConfig, ProviderRecord

_QUERY = text(
    "SELECT p.id, p.name, p.kind, p.enabled, p.sealed_credentials, p.config, t.egress_policy FROM providers p"
    " JOIN tenants t ON t.id = p.tenant_id WHERE p.tenant_id = :tenant ORDER BY p.id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[ProviderRecord, ...]:
    """Return the tenant's providers by id."""
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(
        ProviderRecord(
            id=row.id,
            name=row.name,
            kind=row.kind,
            enabled=row.enabled,
            sealed_credentials=row.sealed_credentials,
            config=msgspec.convert(row.config, ProviderConfig),
            egress_policy=row.egress_policy,
        )
        for row in rows
    )
