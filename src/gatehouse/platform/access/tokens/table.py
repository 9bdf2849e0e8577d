"""The named queries of token requests, as the service role: a client's tenant is known only once it is found."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId

_CLIENT: Final = text(
    "SELECT c.client_id, c.tenant_id, c.scopes, c.enabled, c.rate_limit_tier, c.token_lifetime_seconds,"
    " c.secret_digest, c.previous_secret_digest, c.previous_secret_expires_at"
    " FROM oauth_clients c LEFT JOIN tenants t ON t.id = c.tenant_id"
    " WHERE c.client_id = :client_id AND (c.tenant_id IS NULL OR t.deleted_at IS NULL)"
)
# Asked again, because it may have been disabled since it was found.
_USED: Final = text(
    "UPDATE oauth_clients SET last_used = now() WHERE client_id = :client_id AND enabled RETURNING client_id"
)


class Client(msgspec.Struct, frozen=True):
    client_id: UUID
    tenant_id: TenantId | None
    scopes: list[str]
    enabled: bool
    rate_limit_tier: str
    token_lifetime_seconds: int
    secret_digest: bytes
    previous_secret_digest: bytes | None
    previous_secret_expires_at: datetime | None


async def client(session: AsyncSession, client_id: UUID) -> Client | None:
    """The client, unless its organization is gone."""
    row = (await session.execute(_CLIENT, {"client_id": client_id})).first()
    return None if row is None else msgspec.convert(dict(row._mapping), Client)


async def note_use(session: AsyncSession, client_id: UUID) -> bool:
    """Sets `last_used`. False where the client was disabled or deleted meanwhile."""
    return (await session.execute(_USED, {"client_id": client_id})).first() is not None
