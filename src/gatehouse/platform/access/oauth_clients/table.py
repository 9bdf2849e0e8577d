"""OAuth clients' rows and named queries.

The table's row-level security shows operators every tenant's rows, so each query here says by itself whose it means.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, LargeBinary, Select, false, or_, select, text, true
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, counted
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
    #: before the previous one: `digest` in hexadecimal, `expires_at` as Unix time
    earlier_secrets: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    redirect_uris: Mapped[list[str]]
    public: Mapped[bool]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    last_used: Mapped[datetime | None]


def is_operator(caller: Caller) -> bool:
    return caller.operator and caller.role is Role.ADMIN


def manages_tenants(caller: Caller) -> bool:
    """Whether the caller may name any tenant: operators, and the platform-wide client."""
    return is_operator(caller) or caller.tenant_id is None


def _visible(caller: Caller) -> ColumnElement[bool]:
    if is_operator(caller):
        return true()
    if caller.tenant_id is None:
        # Platform-wide clients are the operators' alone, also before one of their own kind.
        return OAuthClientRow.tenant_id.is_not(None)
    return OAuthClientRow.tenant_id == caller.tenant_id


def _own(caller: Caller) -> ColumnElement[bool]:
    """What a list shows that names no tenant."""
    if caller.tenant_id is None:
        return false()
    own = OAuthClientRow.tenant_id == caller.tenant_id
    return or_(own, OAuthClientRow.tenant_id.is_(None)) if is_operator(caller) else own


async def one(session: AsyncSession, caller: Caller, client_id: UUID, *, lock: bool) -> OAuthClientRow | None:
    """The client by its public id, if the caller may know of it. `lock`: changes to it are one after the other."""
    query = select(OAuthClientRow).where(OAuthClientRow.client_id == client_id, _visible(caller))
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


def listing(caller: Caller, *, tenant_id: TenantId | None, enabled: bool | None) -> Select[OAuthClientRow]:
    """Newest first. `tenant_id` None: the caller's own, and for operators the platform-wide ones."""
    query = select(OAuthClientRow).where(_visible(caller))
    query = query.where(_own(caller) if tenant_id is None else OAuthClientRow.tenant_id == tenant_id)
    if enabled is not None:
        query = query.where(OAuthClientRow.enabled == enabled)
    return query.order_by(OAuthClientRow.created_at.desc(), OAuthClientRow.id.desc())


async def part(session: AsyncSession, query: Select[OAuthClientRow], window: Window) -> Sequence[OAuthClientRow]:
    return (await session.scalars(window.apply(query))).all()


async def total(session: AsyncSession, query: Select[OAuthClientRow]) -> int:
    return (await session.execute(counted(query))).scalar_one()


async def tenant_exists(session: AsyncSession, tenant_id: UUID) -> bool:
    query = select(TenantRecord.id).where(TenantRecord.id == tenant_id, TenantRecord.deleted_at.is_(None))
    return (await session.execute(query)).first() is not None


async def revoke_tokens(session: AsyncSession, client_id: UUID, until: datetime) -> None:
    """No token of this client is believed again. The row can go after `until`, when none can be good any more."""
    await session.execute(_REVOKE, {"subject": client_id, "until": until})
