"""The rows of members, and named queries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import LargeBinary, Select, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.portal.rows import OrgRow


class PortalMemberRow(OrgRow):
    __tablename__ = "members"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    email: Mapped[str]
    #: `owner`, `admin` or `member`
    role: Mapped[str]
    invite_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    invite_expires_at: Mapped[datetime | None]
    #: the person's identity on the platform; null until it is known
    platform_sub: Mapped[str | None]
    platform_tenant_id: Mapped[UUID | None]
    invited_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    @property
    def invited(self) -> bool:
        """Returns whether the row is an invitation that is not accepted. An owner has no invitation."""
        return self.invite_digest is not None


_LOCK: Final = text("SELECT FROM organizations WHERE id = :org FOR NO KEY UPDATE")


def all_members() -> Select[PortalMemberRow]:
    """Returns the query of the organization's members, oldest first."""
    return select(PortalMemberRow).order_by(PortalMemberRow.created_at, PortalMemberRow.id)


async def lock(session: AsyncSession) -> None:
    """Locks the organization's row. This serializes changes of members and revocations of tokens. It does not block
    inserts of rows that reference the organization."""
    await session.execute(_LOCK, {"org": session.info["tenant_id"]})


async def admins(session: AsyncSession) -> Sequence[PortalMemberRow]:
    """Returns the organization's administrators, without invitations that are not accepted."""
    accepted = PortalMemberRow.invite_digest.is_(None)
    return (
        await session.scalars(select(PortalMemberRow).where(PortalMemberRow.role.in_(("owner", "admin")), accepted))
    ).all()
