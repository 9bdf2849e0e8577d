"""Rows of single sign-on, and the named cross-tenant queries: whose affair a request is, is known only once it is
found."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import LargeBinary, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow


class IdpRow(TenantRow):
    __tablename__ = "saml_identity_providers"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    entity_id: Mapped[str]
    sso_url: Mapped[str]
    slo_url: Mapped[str | None]
    x509_cert: Mapped[str]
    attribute_mapping: Mapped[dict[str, str] | None] = mapped_column(JSONB(none_as_null=True))
    is_active: Mapped[bool]
    by_operator: Mapped[bool]
    allow_idp_initiated: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class RequestRow(TenantRow):
    __tablename__ = "saml_requests"

    id: Mapped[str] = mapped_column(primary_key=True)
    idp_id: Mapped[UUID]
    kind: Mapped[str]
    browser_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    relay_state: Mapped[str | None]
    #: of the cookie that the browser held when it set out
    former_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class SamlSessionRow(TenantRow):
    __tablename__ = "saml_sessions"

    session_id: Mapped[UUID] = mapped_column(primary_key=True)
    idp_id: Mapped[UUID]
    name_id: Mapped[str]
    name_id_attributes: Mapped[dict[str, str]] = mapped_column(JSONB)
    session_index: Mapped[str | None]


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """An active identity provider, found before its organization was known."""

    id: UUID
    tenant_id: TenantId
    entity_id: str
    sso_url: str
    slo_url: str | None
    x509_cert: str
    attribute_mapping: dict[str, str] | None
    by_operator: bool
    allow_idp_initiated: bool


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request of ours that is open or was answered, and whom it went to. `provider` is None if it is not in use."""

    id: str
    tenant_id: TenantId
    idp_id: UUID
    browser_digest: bytes | None
    relay_state: str | None
    open: bool
    provider: Provider | None


_PROVIDERS: Final = (
    "SELECT p.id, p.tenant_id, p.entity_id, p.sso_url, p.slo_url, p.x509_cert, p.attribute_mapping, p.by_operator,"
    " p.allow_idp_initiated"
    " FROM saml_identity_providers p JOIN tenants t ON t.id = p.tenant_id AND t.deleted_at IS NULL WHERE p.is_active"
)
_BY_ID: Final = text(_PROVIDERS + " AND p.id = :id")
_BY_ISSUER: Final = text(
    _PROVIDERS + " AND md5(p.entity_id) = md5(:issuer) AND p.entity_id = :issuer ORDER BY p.created_at LIMIT 100"
)
_ASKED: Final = text(
    "SELECT id, tenant_id, idp_id, browser_digest, relay_state, used_at IS NULL AND expires_at > now() AS open"
    " FROM saml_requests WHERE id = :id AND kind = :kind"
)
_USE: Final = text(
    "UPDATE saml_requests SET used_at = now() WHERE id = :id AND used_at IS NULL AND expires_at > now() RETURNING id"
)
# In one order: two that end at once wait for each other only one way.
_TURN: Final = text(
    "SELECT id FROM saml_requests WHERE browser_digest = :browser AND used_at IS NULL ORDER BY id FOR UPDATE"
)
_HELD: Final = text("SELECT former_digest FROM saml_requests WHERE id = :id")
_HOLDS: Final = text(
    "UPDATE saml_requests SET former_digest = :held WHERE browser_digest = :browser AND used_at IS NULL"
)
_SEEN: Final = text(
    "INSERT INTO saml_seen (idp_id, message_digest, tenant_id, expires_at) VALUES (:idp, :digest, :tenant, :until)"
    " ON CONFLICT DO NOTHING RETURNING idp_id"
)
_SUBJECT_SESSIONS: Final = text(
    "SELECT s.id, s.user_id, m.session_index FROM saml_sessions m JOIN sessions s ON s.id = m.session_id"
    " WHERE m.idp_id = :idp AND md5(m.name_id) = md5(:name) AND m.name_id = :name AND s.revoked_at IS NULL"
)


async def all_idps(session: AsyncSession) -> Sequence[IdpRow]:
    """By name."""
    return (await session.scalars(select(IdpRow).order_by(IdpRow.name, IdpRow.id))).all()


async def active_idps(session: AsyncSession) -> Sequence[IdpRow]:
    """What the sign-in page can offer to the session's tenant, by name."""
    query = select(IdpRow).where(IdpRow.is_active).order_by(IdpRow.name, IdpRow.id)
    return (await session.scalars(query)).all()


async def count_idps(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(IdpRow))).scalar_one()


async def active_provider(session: AsyncSession, idp_id: UUID) -> Provider | None:
    """As the service role."""
    row = (await session.execute(_BY_ID, {"id": idp_id})).first()
    return None if row is None else _provider(row)


async def providers_of_issuer(session: AsyncSession, issuer: str) -> list[Provider]:
    """As the service role: active ones of any organization, for several may use the same."""
    return [_provider(row) for row in await session.execute(_BY_ISSUER, {"issuer": issuer})]


async def asked(session: AsyncSession, request_id: str, *, kind: str) -> Asked | None:
    """As the service role."""
    row = (await session.execute(_ASKED, {"id": request_id, "kind": kind})).first()
    if row is None:
        return None
    provider = await active_provider(session, row.idp_id)
    return Asked(**{**row._mapping, "provider": provider})


async def use(session: AsyncSession, request_id: str) -> bool:
    """Marks a request as answered. False where it is already, or has expired; of two at once one gets True."""
    return (await session.execute(_USE, {"id": request_id})).first() is not None


async def browser_held(session: AsyncSession, asked: Asked) -> bytes | None:
    """The digest of the session's cookie in the browser that asked, once its other sign-ins that end now have ended."""
    await session.execute(_TURN, {"browser": asked.browser_digest})
    held: bytes | None = (await session.execute(_HELD, {"id": asked.id})).scalar_one()
    return held


async def browser_holds(session: AsyncSession, browser_digest: bytes | None, held: bytes) -> None:
    """Says to a browser's sign-ins that are under way still (in other tabs) which cookie it holds from now on."""
    await session.execute(_HOLDS, {"browser": browser_digest, "held": held})


async def first_seen(
    session: AsyncSession, tenant_id: TenantId, idp_id: UUID, message_digest: bytes, until: datetime
) -> bool:
    """Remembers a message until it could not be believed any more. False for one that is remembered."""
    values = {"idp": idp_id, "digest": message_digest, "tenant": tenant_id, "until": until}
    return (await session.execute(_SEEN, values)).first() is not None


async def sessions_of_subject(session: AsyncSession, idp_id: UUID, name_id: str) -> list[tuple[UUID, UUID, str | None]]:
    """Session, user and session index of everyone whom the provider calls by this name."""
    rows = await session.execute(_SUBJECT_SESSIONS, {"idp": idp_id, "name": name_id})
    return [(row.id, row.user_id, row.session_index) for row in rows]


def _provider(row: Any) -> Provider:
    return Provider(**row._mapping)
