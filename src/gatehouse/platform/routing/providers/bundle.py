"""What providers give to a tenant's policy."""

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.records import ProviderConfig, ProviderRecord

_QUERY = text(
    "SELECT id, name, kind, enabled, sealed_credentials, config FROM providers WHERE tenant_id = :tenant ORDER BY id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[ProviderRecord, ...]:
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(
        ProviderRecord(
            id=row.id,
            name=row.name,
            kind=row.kind,
            enabled=row.enabled,
            sealed_credentials=row.sealed_credentials,
            config=msgspec.convert(row.config, ProviderConfig),
        )
        for row in rows
    )
