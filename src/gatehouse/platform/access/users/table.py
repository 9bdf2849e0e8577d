"""Users' rows, one-time tokens, and named queries."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import LargeBinary, Select, func, or_, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.organization.tenants.table import TenantRecord


class UserRow(TenantRow):
    __tablename__ = "users"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    email: Mapped[str]
    username: Mapped[str | None]
    display_name: Mapped[str | None]
    role: Mapped[str]
    operator: Mapped[bool]
    password_hash: Mapped[str | None]
    is_active: Mapped[bool]
    email_verified: Mapped[bool]
    #: made by registering without an invitation
    self_registered: Mapped[bool] = mapped_column(default=False)
    #: when the person showed that the address is theirs: by an invitation, or at the identity provider
    address_proven_at: Mapped[datetime | None]
    #: since when an identity provider or a directory uses the account (`access.linking`); None for a local account
    linked_at: Mapped[datetime | None]
    external_id: Mapped[str | None]
    #: What a directory says (`access.scim`): its name of the user, and what has no column.
    user_name: Mapped[str | None]
    directory: Mapped[dict[str, Any]] = mapped_column(JSONB, default=dict)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    last_login_at: Mapped[datetime | None]


class OneTimeTokenRow(TenantRow):
    __tablename__ = "one_time_tokens"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID | None]
    purpose: Mapped[str]
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    created_by: Mapped[UUID | None]
    created_at: Mapped[datetime]


_PROVEN = text("SELECT 1 FROM allowed_domains WHERE domain = :domain AND verified_at IS NOT NULL")
_PROVEN_BY = text(
    "SELECT d.tenant_id FROM allowed_domains d JOIN tenants t ON t.id = d.tenant_id AND t.deleted_at IS NULL"
    " WHERE d.domain = :domain AND d.verified_at IS NOT NULL"
)
_KEYS = text("SELECT id FROM api_keys WHERE user_id = :user")


def matching(*, search: str | None, role: str | None, active: bool | None) -> Select[UserRow]:
    """Users by part of address or name, by role and state; newest first."""
    query = select(UserRow).order_by(UserRow.created_at.desc(), UserRow.id)
    if search:
        fields = (UserRow.email, UserRow.username, UserRow.display_name)
        query = query.where(or_(*(field.icontains(search, autoescape=True) for field in fields)))
    if role is not None:
        query = query.where(UserRow.role == role)
    if active is not None:
        query = query.where(UserRow.is_active.is_(active))
    return query


async def by_email(session: AsyncSession, email: str) -> UserRow | None:
    return (await session.scalars(select(UserRow).where(func.lower(UserRow.email) == email.lower()))).one_or_none()


async def tenant_by_slug(session: AsyncSession, slug: str) -> UUID | None:
    """As the service role: for the command line, which names the tenant."""
    return await session.scalar(
        select(TenantRecord.id).where(TenantRecord.slug == slug, TenantRecord.deleted_at.is_(None))
    )


async def proven(session: AsyncSession, domain: str) -> bool:
    """Whether the session's tenant has proven this mail domain."""
    return (await session.execute(_PROVEN, {"domain": domain})).first() is not None


async def proven_by(session: AsyncSession, domain: str) -> TenantId | None:
    """The tenant that has proven this mail domain. As the service role."""
    found = (await session.execute(_PROVEN_BY, {"domain": domain})).scalar()
    return None if found is None else TenantId(found)


async def lock_tenant(session: AsyncSession) -> None:
    """Two changes that each leave one administrator would together leave none: one after the other."""
    await session.execute(
        select(TenantRecord.id)
        .where(TenantRecord.id == session.info["tenant_id"])
        .with_for_update(key_share=True)  # lets others go on adding rows that belong to the tenant
    )


async def active_admins(session: AsyncSession, *, operators: bool = False) -> int:
    """How many people could administer the session's tenant, or the platform. Service accounts cannot sign in."""
    query = select(func.count()).where(UserRow.kind == "user", UserRow.role == "admin", UserRow.is_active)
    if operators:
        query = query.where(UserRow.operator)
    return await session.scalar(query) or 0


async def key_ids(session: AsyncSession, user_id: UUID) -> list[UUID]:
    return list((await session.execute(_KEYS, {"user": user_id})).scalars())
