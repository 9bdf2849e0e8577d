"""Rows and queries of allowed domains."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow


class DomainRow(TenantRow):
    __tablename__ = "allowed_domains"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    domain: Mapped[str] = mapped_column(primary_key=True)
    jit_provisioning: Mapped[bool]
    self_registration: Mapped[bool] = mapped_column(default=False)
    default_group_id: Mapped[UUID | None]
    verified_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    challenge: Mapped[str]

    @property
    def record_name(self) -> str:
        return f"_gatehouse.{self.domain}"

    @property
    def record_value(self) -> str:
        return f"gatehouse-verification={self.challenge}"


# Locks the group, so that it is not deleted before the transaction that refers to it ends.
_LOCK_GROUP = text("SELECT 1 FROM groups WHERE id = :group FOR KEY SHARE")
_UNVERIFY_ADDRESSES = text(
    "UPDATE users SET email_verified = false, updated_at = now()"
    " WHERE email_verified AND split_part(lower(email), '@', 2) = :domain"
)
_VERIFY_ADDRESSES = text(
    "UPDATE users SET email_verified = true, updated_at = now()"
    " WHERE NOT email_verified AND split_part(lower(email), '@', 2) = :domain RETURNING id"
)


async def all_domains(session: AsyncSession) -> Sequence[DomainRow]:
    """Return the domains of the organization, sorted by name."""
    return (await session.scalars(select(DomainRow).order_by(DomainRow.domain))).all()


async def find(session: AsyncSession, domain: str, *, lock: bool = False) -> DomainRow | None:
    query = select(DomainRow).where(DomainRow.domain == domain)
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


async def group_exists(session: AsyncSession, group_id: UUID) -> bool:
    """Return whether the group exists. Locks it against deletion."""
    return (await session.execute(_LOCK_GROUP, {"group": group_id})).first() is not None


async def verify_addresses(session: AsyncSession, domain: str) -> int:
    """Mark the organization's addresses of the domain as verified. Returns their number."""
    return len((await session.execute(_VERIFY_ADDRESSES, {"domain": domain})).all())


async def unverify_addresses(session: AsyncSession, domain: str) -> None:
    """Mark the organization's addresses of the domain as unverified."""
    await session.execute(_UNVERIFY_ADDRESSES, {"domain": domain})
