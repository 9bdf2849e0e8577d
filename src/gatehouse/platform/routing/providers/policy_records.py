"""The providers' part of a tenant's policy."""

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.routing.providers.presets import provider_config
from gatehouse.policy.catalog import CredentialRecord, ProviderRecord

_QUERY = text(
    "SELECT p.id, p.name, p.kind, p.enabled, p.sealed_credentials, p.credential_state, p.config,"
    " t.egress_policy, v.preset,"
    " (SELECT jsonb_agg(jsonb_build_object('label', c.label, 'state', c.state, 'sealed', c.sealed_secret)"
    " ORDER BY c.label) FROM provider_credentials c"
    " WHERE (c.tenant_id, c.provider_id) = (p.tenant_id, p.id)) AS further FROM providers p"
    " JOIN tenants t ON t.id = p.tenant_id"
    " LEFT JOIN vendors v ON (v.tenant_id, v.id) = (p.tenant_id, p.config->>'preset')"
    " WHERE p.tenant_id = :tenant ORDER BY p.id"
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
            credential_state=row.credential_state,
            credentials=msgspec.convert(row.further or [], tuple[CredentialRecord, ...]),
            config=provider_config(row.kind, row.config, row.preset),
            egress_policy=row.egress_policy,
        )
        for row in rows
    )
