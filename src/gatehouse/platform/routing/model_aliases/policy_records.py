"""The model aliases' part of a tenant's policy."""

from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.catalog import ModelAliasRecord

_QUERY = text(
    "SELECT id, name, balance, sticky, deployments FROM model_aliases WHERE tenant_id = :tenant AND enabled"
    " ORDER BY name"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[ModelAliasRecord, ...]:
    """Return the tenant's enabled aliases."""
    return tuple(map(_record, await session.execute(_QUERY, {"tenant": tenant_id})))


def _record(row: Any) -> ModelAliasRecord:
    return msgspec.convert(row._asdict(), ModelAliasRecord)
