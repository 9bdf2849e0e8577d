"""The named queries of accounts. Those that find the tenant of a request (`tenant_of_*`) need the service role."""

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.organization.allowed_domains.table import DomainRow

_OPEN_DOMAIN = text(
    "SELECT d.tenant_id FROM allowed_domains d JOIN tenants t ON t.id = d.tenant_id AND t.deleted_at IS NULL"
    " WHERE d.domain = :domain AND d.self_registration AND d.verified_at IS NOT NULL"
    " AND NOT EXISTS (SELECT FROM saml_identity_providers p WHERE p.tenant_id = d.tenant_id AND p.is_active)"
)
_ONE_TIME_TOKEN = text(
    "SELECT o.tenant_id FROM one_time_tokens o JOIN tenants t ON t.id = o.tenant_id AND t.deleted_at IS NULL"
    " WHERE o.digest = :digest"
)


async def default_group(session: AsyncSession, domain: str) -> GroupRow | None:
    """Return the group that users who register with this domain join, locked; None if there is none."""
    query = (
        select(GroupRow)
        .join(DomainRow, DomainRow.default_group_id == GroupRow.id)
        .where(DomainRow.domain == domain)
        .with_for_update(of=GroupRow)
    )
    return (await session.scalars(query)).one_or_none()


async def tenant_of_open_domain(session: AsyncSession, domain: str) -> TenantId | None:
    """Return the tenant that has verified this mail domain and allows its addresses to register. A tenant with an
    active identity provider allows none, because its users come by single sign-on."""
    tenant_id = (await session.execute(_OPEN_DOMAIN, {"domain": domain})).scalar()
    return None if tenant_id is None else TenantId(tenant_id)


async def tenant_of_one_time_token(session: AsyncSession, token: str) -> TenantId | None:
    """Return the tenant of a one-time token, valid or not."""
    tenant_id = (await session.execute(_ONE_TIME_TOKEN, {"digest": tokens.digest(token)})).scalar()
    return None if tenant_id is None else TenantId(tenant_id)
