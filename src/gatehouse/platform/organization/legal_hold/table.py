"""The row of an organization's legal hold. It exists only while a hold is set."""

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
    """Return the legal hold of the session's tenant, or None."""
    query = select(LegalHoldRow).where(LegalHoldRow.tenant_id == session.info["tenant_id"])
    return (await session.scalars(query)).one_or_none()


async def lock_removals(session: AsyncSession) -> None:
    """Block removals of the tenant's records, and changes of the tenant's legal hold, until the transaction ends."""
    # Removals check for a hold under the same lock (`gatehouse_held`), so none happens after a hold is committed.
    await acquire_scoped(session, ScopedLock.LEGAL_HOLD, str(session.info["tenant_id"]))
