"""Tables of single sign-on, and named queries. Some are cross-tenant, because the tenant of a request is known only
once its row is read."""

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
from gatehouse.platform.access.saml.protocol import certificates
from gatehouse.platform.access.saml.protocol.certificates import CertificateDetails


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

    @property
    def certificates(self) -> list[CertificateDetails]:
        return certificates.details(self.x509_cert)


class RequestRow(TenantRow):
    __tablename__ = "saml_requests"

    id: Mapped[str] = mapped_column(primary_key=True)
    idp_id: Mapped[UUID]
    kind: Mapped[str]
    browser_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    relay_state: Mapped[str | None]
    #: digest of the session cookie that the browser had when the sign-in started
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


class SamlProvider(msgspec.Struct, frozen=True, kw_only=True):
    """An active identity provider, loaded without a tenant context."""

    id: UUID
    tenant_id: TenantId
    entity_id: str
    sso_url: str
    slo_url: str | None
    x509_cert: str
    attribute_mapping: dict[str, str] | None
    by_operator: bool
    allow_idp_initiated: bool


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that this platform sent. `open` is false if it was answered or has expired. `provider` is None if the
    provider is not active."""

    id: str
    tenant_id: TenantId
    idp_id: UUID
    browser_digest: bytes | None
    relay_state: str | None
    open: bool
    provider: SamlProvider | None


_PROVIDERS: Final = (
    "SELECT p.id, p.tenant_id, p.entity_id, p.sso_url, p.slo_url, p.x509_cert, p.attribute_mapping, p.by_operator,"
    " p.allow_idp_initiated"
    " FROM saml_identity_providers p JOIN tenants t ON t.id = p.tenant_id AND t.deleted_at IS NULL WHERE p.is_active"
)
_BY_ID: Final = text(_PROVIDERS + " AND p.id = :id")
_BY_ISSUER: Final = text(
    _PROVIDERS + " AND md5(p.entity_id) = md5(:issuer) AND p.entity_id = :issuer ORDER BY p.created_at LIMIT 100"
)
_SENT_REQUEST: Final = text(
    "SELECT id, tenant_id, idp_id, browser_digest, relay_state, used_at IS NULL AND expires_at > now() AS open"
    " FROM saml_requests WHERE id = :id AND kind = :kind"
)
_MARK_USED: Final = text(
    "UPDATE saml_requests SET used_at = now() WHERE id = :id AND used_at IS NULL AND expires_at > now() RETURNING id"
)
# Locks the rows always in the same order, so that two concurrent sign-ins do not deadlock.
_LOCK_OPEN_REQUESTS: Final = text(
    "SELECT id FROM saml_requests WHERE browser_digest = :browser AND used_at IS NULL ORDER BY id FOR UPDATE"
)
_FORMER_DIGEST: Final = text("SELECT former_digest FROM saml_requests WHERE id = :id")
_SET_FORMER_DIGEST: Final = text(
    "UPDATE saml_requests SET former_digest = :digest WHERE browser_digest = :browser AND used_at IS NULL"
)
_INSERT_SEEN: Final = text(
    "INSERT INTO saml_seen (idp_id, message_digest, tenant_id, expires_at) VALUES (:idp, :digest, :tenant, :until)"
    " ON CONFLICT DO NOTHING RETURNING idp_id"
)
_SUBJECT_SESSIONS: Final = text(
    "SELECT s.id, s.user_id, m.session_index FROM saml_sessions m JOIN sessions s ON s.id = m.session_id"
    " WHERE m.idp_id = :idp AND md5(m.name_id) = md5(:name) AND m.name_id = :name AND s.revoked_at IS NULL"
)


async def all_idps(session: AsyncSession) -> Sequence[IdpRow]:
    """Return the organization's identity providers, sorted by name."""
    return (await session.scalars(select(IdpRow).order_by(IdpRow.name, IdpRow.id))).all()


async def active_idps(session: AsyncSession) -> Sequence[IdpRow]:
    """Return the active identity providers of the session's tenant, sorted by name."""
    query = select(IdpRow).where(IdpRow.is_active).order_by(IdpRow.name, IdpRow.id)
    return (await session.scalars(query)).all()


async def count_idps(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(IdpRow))).scalar_one()


async def active_provider(session: AsyncSession, idp_id: UUID) -> SamlProvider | None:
    """Return the active provider with this id. Needs the service role."""
    row = (await session.execute(_BY_ID, {"id": idp_id})).first()
    return None if row is None else _provider(row)


async def providers_of_issuer(session: AsyncSession, issuer: str) -> list[SamlProvider]:
    """Return the active providers with this issuer. Several organizations may use the same issuer. Needs the service
    role."""
    return [_provider(row) for row in await session.execute(_BY_ISSUER, {"issuer": issuer})]


async def sent_request(session: AsyncSession, request_id: str, *, kind: str) -> SentRequest | None:
    """Return the request with this id and kind. Needs the service role."""
    row = (await session.execute(_SENT_REQUEST, {"id": request_id, "kind": kind})).first()
    if row is None:
        return None
    provider = await active_provider(session, row.idp_id)
    return SentRequest(**{**row._mapping, "provider": provider})


async def mark_used(session: AsyncSession, request_id: str) -> bool:
    """Mark a request as answered. Return False if it was answered already or has expired. Of two concurrent calls only
    one returns True."""
    return (await session.execute(_MARK_USED, {"id": request_id})).first() is not None


async def former_cookie_digest(session: AsyncSession, sent_request: SentRequest) -> bytes | None:
    """Return the digest of the session cookie that the browser had when it started the sign-in. Waits until concurrent
    sign-ins of the same browser have finished."""
    await session.execute(_LOCK_OPEN_REQUESTS, {"browser": sent_request.browser_digest})
    digest: bytes | None = (await session.execute(_FORMER_DIGEST, {"id": sent_request.id})).scalar_one()
    return digest


async def update_former_cookie(session: AsyncSession, browser_digest: bytes | None, digest: bytes) -> None:
    """Store the digest of the browser's new session cookie with the open sign-ins in its other tabs."""
    await session.execute(_SET_FORMER_DIGEST, {"browser": browser_digest, "digest": digest})


async def remember_message(
    session: AsyncSession, tenant_id: TenantId, idp_id: UUID, message_digest: bytes, expires_at: datetime
) -> bool:
    """Remember a message until it expires. Return False if it is already remembered."""
    values = {"idp": idp_id, "digest": message_digest, "tenant": tenant_id, "until": expires_at}
    return (await session.execute(_INSERT_SEEN, values)).first() is not None


async def sessions_of_subject(session: AsyncSession, idp_id: UUID, name_id: str) -> list[tuple[UUID, UUID, str | None]]:
    """Return session id, user id and session index of each open session with this NameID."""
    rows = await session.execute(_SUBJECT_SESSIONS, {"idp": idp_id, "name": name_id})
    return [(row.id, row.user_id, row.session_index) for row in rows]


def _provider(row: Any) -> SamlProvider:
    return SamlProvider(**row._mapping)
