"""Queries the callers and switches of one organization, for its outposts. The queries read the rows, because the
replica contains all organizations."""

from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId

# Builds `policy.bundles.contents.CallerRecords` as JSON in the database, because a hundred thousand rows would block
# this process.
_CALLERS: Final = text(
    "SELECT json_build_object('custom_rate_limit_rpm', custom_rate_limit_rpm,"
    " 'users', (SELECT coalesce(json_agg(json_build_object('id', u.id, 'email', u.email, 'role', u.role,"
    " 'active', u.is_active, 'groups', ARRAY(SELECT m.group_id FROM group_members m WHERE m.user_id = u.id ORDER BY 1)"
    ") ORDER BY u.id), '[]') FROM users u WHERE u.tenant_id = t.id),"
    " 'keys', (SELECT coalesce(json_agg(json_build_object('id', k.id, 'user_id', k.user_id,"
    " 'digest', encode(k.digest, 'base64'), 'enabled', k.is_enabled,"
    " 'expires_at', extract(epoch FROM k.expires_at)::float8, 'scopes', k.scopes"
    ") ORDER BY k.id), '[]') FROM api_keys k WHERE k.tenant_id = t.id),"
    " 'clients', (SELECT coalesce(json_agg(json_build_object('client_id', c.client_id, 'enabled', c.enabled,"
    " 'scopes', c.scopes) ORDER BY c.client_id), '[]') FROM oauth_clients c WHERE c.tenant_id = t.id)"
    ")::text FROM tenants t WHERE t.id = :tenant"
)
_SWITCHED_OFF: Final = text(
    "SELECT id FROM model_configs WHERE tenant_id = :tenant AND (kill_switch_disabled_at IS NOT NULL"
    " OR provider IN (SELECT s.provider FROM provider_kill_switches s WHERE s.tenant_id = :tenant))"
    " UNION ALL SELECT id FROM mcp_servers WHERE tenant_id = :tenant AND switched_off_at IS NOT NULL"
    " UNION ALL SELECT id FROM mcp_tools"
    " WHERE tenant_id = :tenant AND status = 'approved' AND switched_off_at IS NOT NULL"
)


async def callers(session: AsyncSession, tenant_id: TenantId) -> bytes:
    """Return the `policy.bundles.contents.CallerRecords` of the organization as JSON."""
    document: str = (await session.execute(_CALLERS, {"tenant": tenant_id})).scalar_one()
    return document.encode()


async def switched_off(session: AsyncSession, tenant_id: TenantId) -> frozenset[UUID]:
    """Return the ids of models that are disabled by a kill switch for the model or its provider, and of MCP servers and
    approved tools that are switched off."""
    return frozenset((await session.execute(_SWITCHED_OFF, {"tenant": tenant_id})).scalars())
