"""The named cross-tenant query that finds the grant of an access token for userinfo."""

from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId


class AccessGrant(msgspec.Struct, frozen=True):
    """The user, session and scope of an access token."""

    tenant_id: TenantId
    user_id: UUID
    session_id: UUID
    scope: str


_BY_ACCESS_TOKEN: Final = text(
    "SELECT a.tenant_id, a.user_id, a.session_id, a.scope FROM authorization_codes a"
    " JOIN tenants t ON t.id = a.tenant_id AND t.deleted_at IS NULL"
    " JOIN oauth_clients c ON c.client_id = a.client_id AND c.enabled"
    " WHERE a.access_digest = :digest AND a.access_expires_at > now()"
)


async def by_access_token(session: AsyncSession, digest: bytes) -> AccessGrant | None:
    """Return the grant of a valid access token. Needs the service role, because the tenant is not known yet."""
    row = (await session.execute(_BY_ACCESS_TOKEN, {"digest": digest})).first()
    return None if row is None else AccessGrant(TenantId(row.tenant_id), row.user_id, row.session_id, row.scope)
