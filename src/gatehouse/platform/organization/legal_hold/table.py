"""An organization's legal hold: one row, or none."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.foundation.storage.rows import Row


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
    # Whoever removes something asks for a hold under the same lock (`gatehouse_held`): once a hold is committed nothing
    # is removed.
    await acquire_scoped(session, ScopedLock.LEGAL_HOLD, str(session.info["tenant_id"]))
