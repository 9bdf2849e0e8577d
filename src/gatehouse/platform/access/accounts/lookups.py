"""The named cross-tenant queries of accounts, as the service role: which tenant's affair a request is."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import tokens
from gatehouse.foundation.identity import TenantId

_OPEN_DOMAIN = text(
    "SELECT d.tenant_id FROM allowed_domains d JOIN tenants t ON t.id = d.tenant_id AND t.deleted_at IS NULL"
    " WHERE d.domain = :domain AND d.self_registration AND d.verified_at IS NOT NULL"
    " AND NOT EXISTS (SELECT FROM saml_identity_providers p WHERE p.tenant_id = d.tenant_id AND p.is_active)"
)
_ONE_TIME_TOKEN = text(
    "SELECT o.tenant_id FROM one_time_tokens o JOIN tenants t ON t.id = o.tenant_id AND t.deleted_at IS NULL"
    " WHERE o.digest = :digest"
)


async def open_domain(session: AsyncSession, domain: str) -> TenantId | None:
    """The tenant that has proven this mail domain and lets its addresses register. With an active identity provider it
    lets nobody: people come by single sign-on."""
    found = (await session.execute(_OPEN_DOMAIN, {"domain": domain})).scalar()
    return None if found is None else TenantId(found)


async def one_time_token(session: AsyncSession, token: str) -> TenantId | None:
    """The tenant of a one-time token, good or not."""
    found = (await session.execute(_ONE_TIME_TOKEN, {"digest": tokens.digest(token)})).scalar()
    return None if found is None else TenantId(found)
