"""Allowed domains' rows, and named queries."""

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


# Locked, so that it is not removed meanwhile: the domain refers to it.
_GROUP = text("SELECT 1 FROM groups WHERE id = :group FOR KEY SHARE")
_DISTRUST = text(
    "UPDATE users SET email_verified = false, updated_at = now()"
    " WHERE email_verified AND split_part(lower(email), '@', 2) = :domain"
)
_TRUST = text(
    "UPDATE users SET email_verified = true, updated_at = now()"
    " WHERE NOT email_verified AND split_part(lower(email), '@', 2) = :domain RETURNING id"
)


async def all_domains(session: AsyncSession) -> Sequence[DomainRow]:
    """By name."""
    return (await session.scalars(select(DomainRow).order_by(DomainRow.domain))).all()


async def find(session: AsyncSession, domain: str, *, lock: bool = False) -> DomainRow | None:
    query = select(DomainRow).where(DomainRow.domain == domain)
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


async def group_exists(session: AsyncSession, group_id: UUID) -> bool:
    return (await session.execute(_GROUP, {"group": group_id})).first() is not None


async def trust(session: AsyncSession, domain: str) -> int:
    """Verifies the organization's addresses of a domain that it has just proven. Returns how many there were."""
    return len((await session.execute(_TRUST, {"domain": domain})).all())


async def distrust(session: AsyncSession, domain: str) -> None:
    """The organization's addresses of a domain that it has not proven any more."""
    await session.execute(_DISTRUST, {"domain": domain})
