"""Members' rows and named queries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import LargeBinary, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.portal.rows import OrgRow


class MemberRow(OrgRow):
    __tablename__ = "members"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    email: Mapped[str]
    #: `owner`, `admin` or `member`
    role: Mapped[str]
    invite_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    invite_expires_at: Mapped[datetime | None]
    #: who it is on the platform, once that is known
    platform_sub: Mapped[str | None]
    platform_tenant_id: Mapped[UUID | None]
    invited_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
    created_at: Mapped[datetime]

    @property
    def invited(self) -> bool:
        """Whether the invitation is not accepted. An owner has none: the platform knows who that is."""
        return self.invite_digest is not None


_LOCK: Final = text("SELECT FROM organizations WHERE id = :org FOR NO KEY UPDATE")


async def all_members(session: AsyncSession) -> Sequence[MemberRow]:
    """The organization's, oldest first."""
    return (await session.scalars(select(MemberRow).order_by(MemberRow.created_at, MemberRow.id))).all()


async def lock(session: AsyncSession) -> None:
    """Makes changes of members, and of which tokens are good, happen one after the other. Others go on adding rows that
    belong to the organization."""
    await session.execute(_LOCK, {"org": session.info["tenant_id"]})


async def admins(session: AsyncSession) -> Sequence[MemberRow]:
    """Who administers the organization, without invitations that are not accepted."""
    accepted = MemberRow.invite_digest.is_(None)
    return (await session.scalars(select(MemberRow).where(MemberRow.role.in_(("owner", "admin")), accepted))).all()
