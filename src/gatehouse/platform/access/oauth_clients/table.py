"""The table of OAuth clients and its named queries.

Row-level security shows operators the rows of every tenant, so each query here filters by tenant explicitly.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, LargeBinary, Select, Text, false, or_, select, text, true
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, containing, count_query, sorted_by
from gatehouse.foundation.identity import Caller, Role, TenantId
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.organization.tenants.table import TenantRecord

_REVOKE: Final = text(
    "INSERT INTO revocations (subject, kind, expires_at) VALUES (:subject, 'oauth_client', :until)"
    " ON CONFLICT (subject) DO NOTHING"
)


class OAuthClientRow(Row):
    __tablename__ = "oauth_clients"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    client_id: Mapped[UUID] = mapped_column(unique=True)
    tenant_id: Mapped[TenantId | None]
    name: Mapped[str]
    scopes: Mapped[list[str]]
    created_by: Mapped[UUID | None]
    enabled: Mapped[bool]
    rate_limit_tier: Mapped[str]
    token_lifetime_seconds: Mapped[int]
    secret_digest: Mapped[bytes] = mapped_column(LargeBinary)
    previous_secret_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    previous_secret_expires_at: Mapped[datetime | None]
    #: secrets before the previous one: `digest` in hexadecimal, `expires_at` as Unix time
    earlier_secrets: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    redirect_uris: Mapped[list[str]]
    user_scopes: Mapped[list[str]]
    public: Mapped[bool]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    last_used: Mapped[datetime | None]


def is_operator(caller: Caller) -> bool:
    return caller.operator and caller.role is Role.ADMIN


def manages_tenants(caller: Caller) -> bool:
    """Return whether the caller may name any tenant: operators and platform-wide clients may."""
    return is_operator(caller) or caller.tenant_id is None


def _visible(caller: Caller) -> ColumnElement[bool]:
    if is_operator(caller):
        return true()
    if caller.tenant_id is None:
        # A platform-wide client cannot see platform-wide clients: only operators can.
        return OAuthClientRow.tenant_id.is_not(None)
    return OAuthClientRow.tenant_id == caller.tenant_id


def _own_clients(caller: Caller) -> ColumnElement[bool]:
    """Return the filter of a list request that specifies no tenant."""
    if caller.tenant_id is None:
        return false()
    own_tenant = OAuthClientRow.tenant_id == caller.tenant_id
    return or_(own_tenant, OAuthClientRow.tenant_id.is_(None)) if is_operator(caller) else own_tenant


async def find_client(session: AsyncSession, caller: Caller, client_id: UUID, *, lock: bool) -> OAuthClientRow | None:
    """Return the client with this public id if the caller may see it. `lock` locks the row, which serializes changes of
    the client."""
    query = select(OAuthClientRow).where(OAuthClientRow.client_id == client_id, _visible(caller))
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


def list_query(
    caller: Caller,
    *,
    tenant_id: TenantId | None,
    enabled: bool | None,
    search: str | None = None,
    sort: str = "-created_at",
) -> Select[OAuthClientRow]:
    """Return the query of a list. `tenant_id` None selects the clients of the caller's tenant, and for operators the
    platform-wide clients too. `search` is a part of the name or of the client's id."""
    query = select(OAuthClientRow).where(_visible(caller))
    query = query.where(_own_clients(caller) if tenant_id is None else OAuthClientRow.tenant_id == tenant_id)
    if enabled is not None:
        query = query.where(OAuthClientRow.enabled == enabled)
    query = containing(query, search, OAuthClientRow.name, OAuthClientRow.client_id.cast(Text))
    columns = {
        "name": OAuthClientRow.name,
        "last_used": OAuthClientRow.last_used,
        "created_at": OAuthClientRow.created_at,
    }
    return sorted_by(query, sort, columns, unique=OAuthClientRow.id)


async def fetch_window(
    session: AsyncSession, query: Select[OAuthClientRow], window: Window
) -> Sequence[OAuthClientRow]:
    return (await session.scalars(window.apply(query))).all()


async def count_clients(session: AsyncSession, query: Select[OAuthClientRow]) -> int:
    return (await session.execute(count_query(query))).scalar_one()


async def tenant_exists(session: AsyncSession, tenant_id: UUID) -> bool:
    query = select(TenantRecord.id).where(TenantRecord.id == tenant_id, TenantRecord.deleted_at.is_(None))
    return (await session.execute(query)).first() is not None


async def revoke_tokens(session: AsyncSession, client_id: UUID, expires_at: datetime) -> None:
    """Refuse all tokens of this client. The row can be deleted after `expires_at`, when all of them have expired."""
    await session.execute(_REVOKE, {"subject": client_id, "until": expires_at})
