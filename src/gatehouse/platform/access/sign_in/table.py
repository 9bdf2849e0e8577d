"""The named cross-tenant query that finds the organization whose identity providers the sign-in page offers."""

from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.foundation.identity import TenantId

# Finds the tenant by its slug, else by the address's domain, which only one organization can have verified.
_TENANT: Final = text(
    "SELECT t.id FROM tenants t WHERE t.deleted_at IS NULL AND CASE WHEN CAST(:slug AS text) IS NOT NULL"
    " THEN t.slug = :slug ELSE EXISTS (SELECT FROM allowed_domains d"
    " WHERE d.tenant_id = t.id AND d.domain = :domain AND d.verified_at IS NOT NULL) END"
)


async def tenant_of(session: AsyncSession, *, slug: str | None, email: str | None) -> TenantId | None:
    """Return the organization with the slug; without a slug, the organization that has verified the address's domain.
    Needs the service role."""
    if slug is None and (email is None or "@" not in email):
        return None
    values = {"slug": slug, "domain": emails.domain(email or "")}
    tenant_id = (await session.execute(_TENANT, values)).scalar()
    return None if tenant_id is None else TenantId(tenant_id)
