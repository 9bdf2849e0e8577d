"""Tables of users and one-time tokens, and named queries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import LargeBinary, Select, Uuid, any_, func, literal, literal_column, select, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import containing, sorted_by
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
    #: when an identity provider or a directory first used the account (`access.linking`); None for a local account
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
_REMOVE_CONNECTIONS = text(
    "DELETE FROM mcp_connections c USING mcp_servers s WHERE c.user_id = :user AND s.id = c.server_id"
    " RETURNING s.id, s.name"
)
_REMOVE_CONSENTS = text("DELETE FROM mcp_consents WHERE user_id = :user")
_WITH: Final = text("SELECT gatehouse_users_with(:part, :max_rows)")
#: A search with at most this many matches finds its rows by an index. If more rows match, the rows are read in the
#: order of the list, which soon fills a page.
MAX_INDEXED_MATCHES: Final = 1_000

#: the name by which a user is shown, and its form for sorting
SHOWN_NAME: Final = func.gatehouse_user_name(UserRow.display_name, UserRow.email, UserRow.username)
SORTED_NAME: Final = func.lower(SHOWN_NAME)


async def matching(
    session: AsyncSession,
    *,
    search: str | None,
    role: str | None,
    active: bool | None,
    kind: str | None = None,
    sort: str = "-created_at",
) -> Select[UserRow]:
    """Return the query of the users that match the filters. `search` is a part of an address or a name."""
    query = select(UserRow)
    if search:
        ids = await ids_with(session, search)
        if ids is None:
            query = containing(query, search, UserRow.email, UserRow.username, UserRow.display_name)
        else:
            query = query.where(UserRow.id == any_(literal(ids, ARRAY(Uuid))))
    if role is not None:
        query = query.where(UserRow.role == role)
    if active is not None:
        query = query.where(UserRow.is_active.is_(active))
    if kind is not None:
        query = query.where(UserRow.kind == kind)
    columns = {
        "name": SORTED_NAME,
        "role": (UserRow.role, UserRow.created_at),
        "last_login_at": func.coalesce(UserRow.last_login_at, literal_column("'-infinity'::timestamptz")),
        "created_at": UserRow.created_at,
    }
    return sorted_by(query, sort, columns, unique=UserRow.id)


async def ids_with(session: AsyncSession, part: str) -> Sequence[UUID] | None:
    """Return the ids of the users with this part of an address or a name; None for a part that is shorter than three
    characters or has more than `MAX_INDEXED_MATCHES` matches."""
    ids: Sequence[UUID] | None = await session.scalar(_WITH, {"part": part, "max_rows": MAX_INDEXED_MATCHES})
    return ids


async def by_email(session: AsyncSession, email: str) -> UserRow | None:
    return (await session.scalars(select(UserRow).where(func.lower(UserRow.email) == email.lower()))).one_or_none()


async def tenant_by_slug(session: AsyncSession, slug: str) -> UUID | None:
    """Return the id of the tenant with this slug, for the command line. Needs the service role."""
    return await session.scalar(
        select(TenantRecord.id).where(TenantRecord.slug == slug, TenantRecord.deleted_at.is_(None))
    )


async def has_proven_domain(session: AsyncSession, domain: str) -> bool:
    """Return whether the session's tenant has verified this mail domain."""
    return (await session.execute(_HAS_PROVEN_DOMAIN, {"domain": domain})).first() is not None


async def proven_by(session: AsyncSession, domain: str) -> TenantId | None:
    """Return the tenant that has verified this mail domain. Needs the service role."""
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
    Service accounts are not counted, because they cannot sign in."""
    query = select(func.count()).where(UserRow.kind == "user", UserRow.role == "admin", UserRow.is_active)
    if operators:
        query = query.where(UserRow.operator)
    return await session.scalar(query) or 0


async def remove_mcp_connections(session: AsyncSession, user_id: UUID) -> list[tuple[UUID, str]]:
    """Remove a user's tokens for MCP servers. Returns the ids and names of the servers, by name."""
    await session.execute(_REMOVE_CONSENTS, {"user": user_id})
    rows = await session.execute(_REMOVE_CONNECTIONS, {"user": user_id})
    return sorted(((row.id, row.name) for row in rows), key=lambda server: server[1])


async def key_ids(session: AsyncSession, user_id: UUID) -> list[UUID]:
    return list((await session.execute(_KEY_IDS, {"user": user_id})).scalars())
