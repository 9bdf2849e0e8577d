"""Tables of users and one-time tokens, and named queries."""

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
    #: whether a registration without an invitation created the user
    self_registered: Mapped[bool] = mapped_column(default=False)
    #: whether the user can sign in with a password only after confirming the address by a mailed link
    awaits_confirmation: Mapped[bool] = mapped_column(default=False)
    #: when the user proved the address, by a mailed link, by an invitation or at the identity provider
    address_proven_at: Mapped[datetime | None]
    #: since when an identity provider or a directory uses the account (`access.linking`); None for a local account
    linked_at: Mapped[datetime | None]
    external_id: Mapped[str | None]
    #: a directory's user name, and its attributes without a column (`access.scim`)
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
    #: whether the token was sent by mail, and not returned to a caller
    by_mail: Mapped[bool] = mapped_column(default=False)
    #: the sealed token until its mail is sent or has failed, then null
    sealed_token: Mapped[str | None]
    mailed_at: Mapped[datetime | None]


_HAS_PROVEN_DOMAIN = text("SELECT 1 FROM allowed_domains WHERE domain = :domain AND verified_at IS NOT NULL")
_PROVEN_BY = text(
    "SELECT d.tenant_id FROM allowed_domains d JOIN tenants t ON t.id = d.tenant_id AND t.deleted_at IS NULL"
    " WHERE d.domain = :domain AND d.verified_at IS NOT NULL"
)
_KEY_IDS = text("SELECT id FROM api_keys WHERE user_id = :user")


def matching(*, search: str | None, role: str | None, active: bool | None, kind: str | None = None) -> Select[UserRow]:
    """Return the query of the users that match the filters, newest first. `search` is a part of an address or a
    name."""
    query = select(UserRow).order_by(UserRow.created_at.desc(), UserRow.id)
    if search:
        fields = (UserRow.email, UserRow.username, UserRow.display_name)
        query = query.where(or_(*(field.icontains(search, autoescape=True) for field in fields)))
    if role is not None:
        query = query.where(UserRow.role == role)
    if active is not None:
        query = query.where(UserRow.is_active.is_(active))
    if kind is not None:
        query = query.where(UserRow.kind == kind)
    return query


async def by_email(session: AsyncSession, email: str) -> UserRow | None:
    return (await session.scalars(select(UserRow).where(func.lower(UserRow.email) == email.lower()))).one_or_none()


async def tenant_by_slug(session: AsyncSession, slug: str) -> UUID | None:
    """Return the id of the tenant with this slug, for the command line. Needs the service role."""
    return await session.scalar(
        select(TenantRecord.id).where(TenantRecord.slug == slug, TenantRecord.deleted_at.is_(None))
    )


async def has_proven_domain(session: AsyncSession, domain: str) -> bool:
    """Return whether the session's tenant has proven this mail domain."""
    return (await session.execute(_HAS_PROVEN_DOMAIN, {"domain": domain})).first() is not None


async def proven_by(session: AsyncSession, domain: str) -> TenantId | None:
    """Return the tenant that has proven this mail domain. Needs the service role."""
    tenant_id = (await session.execute(_PROVEN_BY, {"domain": domain})).scalar()
    return None if tenant_id is None else TenantId(tenant_id)


async def lock_tenant(session: AsyncSession) -> None:
    """Lock the tenant, so that two concurrent changes cannot together remove the last administrator."""
    await session.execute(
        select(TenantRecord.id)
        .where(TenantRecord.id == session.info["tenant_id"])
        .with_for_update(key_share=True)  # others can still add rows that reference the tenant
    )


async def active_admins(session: AsyncSession, *, operators: bool = False) -> int:
    """Return the number of active administrators of the session's tenant, or with `operators` of its active operators.
    Service accounts do not count, because they cannot sign in."""
    query = select(func.count()).where(UserRow.kind == "user", UserRow.role == "admin", UserRow.is_active)
    if operators:
        query = query.where(UserRow.operator)
    return await session.scalar(query) or 0


async def key_ids(session: AsyncSession, user_id: UUID) -> list[UUID]:
    return list((await session.execute(_KEY_IDS, {"user": user_id})).scalars())
