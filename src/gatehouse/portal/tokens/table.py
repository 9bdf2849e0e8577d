"""The rows of revoked tokens, and queries for issued tokens."""

from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.portal.rows import OrgRow


class RevokedTokenRow(OrgRow):
    __tablename__ = "revoked_tokens"

    org_id: Mapped[TenantId] = mapped_column(primary_key=True)
    jti: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    revoked_at: Mapped[datetime]
    expires_at: Mapped[datetime]


# Issued tokens are found by their audit events, which are recorded in the same transaction. The query uses the index of
# the organization's audit events.
_NEWEST: Final = text(
    "SELECT resource_id FROM audit WHERE org_id = :org AND action = 'token.issued'"
    " AND (resource_id = :family OR details->>'family' = :family)"
    " ORDER BY at DESC, id DESC LIMIT 1"
)
_FAMILY: Final = text(
    "SELECT COALESCE(details->>'family', resource_id) FROM audit"
    " WHERE org_id = :org AND action = 'token.issued' AND resource_id = :jti"
)


async def newest_of_family(session: AsyncSession, jti: str) -> str | None:
    """Returns the `jti` of the newest token in the series of the token with this `jti`, or None if no such token has
    been issued."""
    org_id = session.info["tenant_id"]
    family = await session.scalar(_FAMILY, {"org": org_id, "jti": jti})
    if family is None:
        return None
    newest: str | None = await session.scalar(_NEWEST, {"org": org_id, "family": family})
    return newest
