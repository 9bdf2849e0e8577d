"""The table of authorization codes, and the named queries of token requests. The queries need the service role, because
the tenant of a request is known only once client or code is read."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import LargeBinary, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow

_CLIENT: Final = text(
    "SELECT c.client_id, c.tenant_id, c.name, c.scopes, c.enabled, c.rate_limit_tier, c.token_lifetime_seconds,"
    " c.secret_digest, c.previous_secret_digest, c.previous_secret_expires_at, c.earlier_secrets, c.public,"
    " c.redirect_uris, c.user_scopes"
    " FROM oauth_clients c LEFT JOIN tenants t ON t.id = c.tenant_id"
    " WHERE c.client_id = :client_id AND (c.tenant_id IS NULL OR t.deleted_at IS NULL)"
)
# Checks `enabled` again, because the client may have been disabled since it was read.
_RECORD_USE: Final = text(
    "UPDATE oauth_clients SET last_used = now() WHERE client_id = :client_id AND enabled RETURNING client_id"
)


class Client(msgspec.Struct, frozen=True):
    """A client of an organization that is not deleted, or a platform-wide client."""

    client_id: UUID
    tenant_id: TenantId | None
    name: str
    scopes: list[str]
    enabled: bool
    rate_limit_tier: str
    token_lifetime_seconds: int
    secret_digest: bytes
    previous_secret_digest: bytes | None
    previous_secret_expires_at: datetime | None
    #: `digest` in hexadecimal, `expires_at` as Unix time
    earlier_secrets: list[dict[str, Any]]
    public: bool
    redirect_uris: list[str]
    #: scopes that the client may have as an application that acts for users
    user_scopes: list[str]

    @property
    def can_sign_users_in(self) -> bool:
        return self.enabled and bool(self.redirect_uris)

    def is_for(self, tenant_id: TenantId) -> bool:
        """Return whether users of the organization can sign in to the client."""
        return self.tenant_id in {None, tenant_id}


class AuthorizationCodeRow(TenantRow):
    """A code, and the digest of the access token that it was exchanged for.

    `session_id` is the session in which the user authorized the client. The code and the token are void once it has
    ended.
    """

    __tablename__ = "authorization_codes"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    session_id: Mapped[UUID]
    user_id: Mapped[UUID]
    client_id: Mapped[UUID]
    redirect_uri: Mapped[str]
    challenge: Mapped[str]
    nonce: Mapped[str | None]
    scope: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    access_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    access_expires_at: Mapped[datetime | None]

    def is_valid(self) -> bool:
        return self.used_at is None and self.expires_at > utc_now()


_TENANT_OF_CODE: Final = text(
    "SELECT a.tenant_id FROM authorization_codes a JOIN tenants t ON t.id = a.tenant_id AND t.deleted_at IS NULL"
    " WHERE a.digest = :digest"
)


async def tenant_of_code(session: AsyncSession, digest: bytes) -> TenantId | None:
    """Return the tenant of a code, valid or not."""
    tenant_id = (await session.execute(_TENANT_OF_CODE, {"digest": digest})).scalar()
    return None if tenant_id is None else TenantId(tenant_id)


async def find_client(session: AsyncSession, client_id: UUID) -> Client | None:
    """Return the client, unless its organization is deleted."""
    row = (await session.execute(_CLIENT, {"client_id": client_id})).first()
    return None if row is None else msgspec.convert(dict(row._mapping), Client)


async def record_use(session: AsyncSession, client_id: UUID) -> bool:
    """Set `last_used`. Return False if the client was disabled or deleted meanwhile."""
    return (await session.execute(_RECORD_USE, {"client_id": client_id})).first() is not None
