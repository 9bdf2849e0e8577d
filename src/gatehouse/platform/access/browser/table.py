"""The table of browser sessions, and the named cross-tenant query that finds one by its cookie."""

from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import LargeBinary, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow


class BrowserSessionRow(TenantRow):
    __tablename__ = "browser_sessions"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    session_id: Mapped[UUID]
    created_at: Mapped[datetime]


_BY_SECRET: Final = text(
    "SELECT b.tenant_id, b.session_id FROM browser_sessions b"
    " JOIN tenants t ON t.id = b.tenant_id AND t.deleted_at IS NULL WHERE b.digest = :digest"
)
_ORGANIZATION: Final = text("SELECT slug, name FROM tenants WHERE id = :tenant")


async def by_secret(session: AsyncSession, digest: bytes) -> tuple[TenantId, UUID] | None:
    """Return tenant and session id for a cookie's digest, even if the session has ended. Needs the service role,
    because the tenant is known only once the row is read."""
    row = (await session.execute(_BY_SECRET, {"digest": digest})).first()
    return None if row is None else (TenantId(row.tenant_id), row.session_id)


async def organization_of(session: AsyncSession) -> tuple[str, str]:
    """Return slug and name of the session's tenant."""
    row = (await session.execute(_ORGANIZATION, {"tenant": session.info["tenant_id"]})).one()
    return row.slug, row.name
