"""An organization's legal hold: one row, or none."""

from datetime import datetime
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import Row

#: Waits for whoever removes something of the organization's, which asks for a hold under the same lock
#: (`gatehouse_held`): once a hold is committed nothing is removed.
_ALONE: Final = text("SELECT pg_advisory_xact_lock(hashtext('gatehouse.legal_hold'), hashtext(CAST(:tenant AS text)))")


class LegalHoldRow(Row):
    __tablename__ = "legal_holds"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    reason: Mapped[str]
    set_by: Mapped[str]
    set_at: Mapped[datetime]


async def legal_hold(session: AsyncSession) -> LegalHoldRow | None:
    """The session's tenant's."""
    query = select(LegalHoldRow).where(LegalHoldRow.tenant_id == session.info["tenant_id"])
    return (await session.scalars(query)).one_or_none()


async def alone(session: AsyncSession) -> None:
    """Until the transaction ends, nothing of the session's tenant's is removed, and no hold set or released."""
    await session.execute(_ALONE, {"tenant": str(session.info["tenant_id"])})
