"""Tables of sessions, and the named cross-tenant queries of the sign-in."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import LargeBinary, Select, func, literal, select, text, tuple_
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.users.table import UserRow, proven_by


class SessionRow(TenantRow):
    __tablename__ = "sessions"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID]
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    revoked_reason: Mapped[str | None]
    ip: Mapped[str | None]
    user_agent: Mapped[str | None]
    amr: Mapped[list[str]] = mapped_column(JSONB)
    mfa_at: Mapped[datetime | None]
    tokens_until: Mapped[datetime | None]
    not_after: Mapped[datetime | None]

    def open(self) -> bool:
        return self.revoked_at is None and self.expires_at > utc_now()


class RefreshTokenRow(TenantRow):
    __tablename__ = "refresh_tokens"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    session_id: Mapped[UUID]
    issued_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class SignInAccount(msgspec.Struct, frozen=True):
    """An account that a sign-in may refer to. `tenant` is the organization's slug."""

    id: UUID
    tenant_id: TenantId
    tenant: str
    password_hash: str | None


class SignInCandidates(msgspec.Struct, frozen=True):
    """The accounts that a sign-in may refer to, oldest first. `checks` is the number of hashes to compute. It depends
    only on the request, and not on which accounts exist."""

    accounts: list[SignInAccount]
    checks: int


#: maximum number of accounts with the same address, in different organizations, whose password is tried
MAX_CANDIDATES: Final = 8

# An address of a verified domain belongs to the tenant that has verified it. Any other address may have accounts in
# several tenants, because each can create users with unproven addresses. Accounts with a password come first, so that
# accounts without one do not displace them.
_ACCOUNTS = """
    SELECT u.id, u.tenant_id, t.slug, u.password_hash FROM users u
    JOIN tenants t ON t.id = u.tenant_id AND t.deleted_at IS NULL
    WHERE u.is_active AND u.kind = 'user' AND t.slug = COALESCE(CAST(:tenant AS text), t.slug)
"""
_OF_EMAIL = " AND lower(u.email) = lower(:name) AND u.tenant_id = COALESCE(CAST(:owner AS uuid), u.tenant_id)"
_OF_USERNAME = " AND lower(u.username) = lower(:name)"
_OLDEST_FIRST = f" ORDER BY u.password_hash IS NULL, u.created_at, u.id LIMIT {MAX_CANDIDATES}"
_BY_EMAIL, _BY_USERNAME = text(_ACCOUNTS + _OF_EMAIL + _OLDEST_FIRST), text(_ACCOUNTS + _OF_USERNAME + _OLDEST_FIRST)
# Counts the organizations, because an address has at most one account in each of them.
_ORGANIZATIONS = text(
    f"SELECT count(*) FROM (SELECT FROM tenants WHERE deleted_at IS NULL LIMIT {MAX_CANDIDATES}) t"  # noqa: S608
)

_REFRESH_TOKEN = text(
    "SELECT r.tenant_id, r.session_id FROM refresh_tokens r"
    " JOIN tenants t ON t.id = r.tenant_id AND t.deleted_at IS NULL WHERE r.digest = :digest"
)


async def login_candidates(session: AsyncSession, name: str, *, tenant: str | None) -> SignInCandidates:
    """Return the active accounts of an address or user name. Needs the service role, because the tenant is not known
    yet."""
    values = {"name": name, "tenant": tenant}
    owner = None
    if "@" in name:
        owner = await proven_by(session, emails.domain(name))
        rows = (await session.execute(_BY_EMAIL, {**values, "owner": owner})).all()
    else:
        rows = (await session.execute(_BY_USERNAME, values)).all()
    checks = 1
    if owner is None and tenant is None:
        checks = max(1, (await session.execute(_ORGANIZATIONS)).scalar_one())
    return SignInCandidates(
        [SignInAccount(row.id, TenantId(row.tenant_id), row.slug, row.password_hash) for row in rows], checks
    )


async def refresh_token_owner(session: AsyncSession, digest: bytes) -> tuple[TenantId, UUID] | None:
    """Return tenant and session id of a refresh token, valid or not. Needs the service role."""
    row = (await session.execute(_REFRESH_TOKEN, {"digest": digest})).first()
    return None if row is None else (TenantId(row.tenant_id), row.session_id)


async def lock_session(session: AsyncSession, session_id: UUID) -> SessionRow | None:
    """Return the session, locked, so that the second of two concurrent refreshes sees the changes of the first."""
    return await session.get(SessionRow, session_id, with_for_update=True)


async def newer_sessions(session: AsyncSession, older: SessionRow) -> int:
    """Return the number of open sessions that the user has opened after this one."""
    query = select(func.count()).where(
        SessionRow.user_id == older.user_id,
        SessionRow.revoked_at.is_(None),
        SessionRow.expires_at > utc_now(),
        tuple_(SessionRow.created_at, SessionRow.id) > tuple_(literal(older.created_at), literal(older.id)),
    )
    return await session.scalar(query) or 0


async def lock_user(session: AsyncSession, user_id: UUID) -> None:
    """Lock the user, so that the second of two concurrent sign-ins sees the session of the first."""
    await session.execute(select(UserRow.id).where(UserRow.id == user_id).with_for_update())


def open_sessions(user_id: UUID) -> Select[SessionRow]:
    """Return the query of the user's open sessions, newest first."""
    is_open = SessionRow.revoked_at.is_(None), SessionRow.expires_at > utc_now()
    query = select(SessionRow).where(SessionRow.user_id == user_id, *is_open)
    return query.order_by(SessionRow.created_at.desc(), SessionRow.id.desc())
