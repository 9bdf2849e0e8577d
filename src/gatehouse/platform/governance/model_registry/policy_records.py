"""Reads the model registry for a tenant's policy."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.governance import RegistryEnforcement, RegistryRecord

_QUERY = text(
    "SELECT provider, model_id, risk_tier, validation_status FROM registered_models"
    " WHERE tenant_id = :tenant ORDER BY provider, model_id"
)


#: Accepted values of the setting `registry_enforcement`. Any other value means `off`.
_ENFORCEMENTS: Final[Mapping[str, RegistryEnforcement]] = {"warn": "warn", "block": "block"}


def enforcement(configured: str) -> RegistryEnforcement:
    return _ENFORCEMENTS.get(configured, "off")


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[RegistryRecord, ...]:
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(RegistryRecord(**row._mapping) for row in rows)
