"""The row of the outposts' trust. It belongs to the platform, not to an organization; operators change it."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.locks import GlobalLock, acquire
from gatehouse.foundation.storage.rows import Row

KEY: Final = "portal"

_EXISTING_TENANTS: Final = text("SELECT id FROM tenants WHERE id = ANY(CAST(:ids AS uuid[])) AND deleted_at IS NULL")


class OutpostTrustRow(Row):
    __tablename__ = "outpost_trust"

    key: Mapped[str] = mapped_column(primary_key=True)
    ca_certificates: Mapped[list[str]]
    #: tenant ids by organization id
    organizations: Mapped[dict[str, Any]]
    #: objects with `outpost_id`, `org_id`, `serials`
    outposts: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    updated_at: Mapped[datetime]


async def find_for_change(session: AsyncSession) -> OutpostTrustRow | None:
    """Return the row. Locks it, and its creation where there is none yet."""
    await acquire(session, GlobalLock.OUTPOST_TRUST)
    return (await session.scalars(select(OutpostTrustRow).where(OutpostTrustRow.key == KEY))).one_or_none()


async def known_tenants(session: AsyncSession, ids: list[UUID]) -> set[UUID]:
    """Return those of `ids` that exist. Needs an operator's session, which sees all organizations."""
    return set((await session.execute(_EXISTING_TENANTS, {"ids": ids})).scalars())
