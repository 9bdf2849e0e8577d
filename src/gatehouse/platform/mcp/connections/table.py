"""Tables of connections and of consents that were begun, and named queries."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import FetchedValue, LargeBinary, Select, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, column_property, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.policy.mcp import McpServerRecord

#: Maximum number of waiting revocations of an organization. The trigger has the same limit.
MAX_REVOCATIONS: Final = 10_000


class ConnectionRow(TenantRow):
    __tablename__ = "mcp_connections"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    server_id: Mapped[UUID]
    user_id: Mapped[UUID] = mapped_column()
    server_url: Mapped[str]
    client_id: Mapped[str]
    issuer: Mapped[str | None]
    token_url: Mapped[str]
    revocation_url: Mapped[str | None]
    scope: Mapped[str | None]
    sealed_tokens: Mapped[str | None]
    expires_at: Mapped[datetime | None]
    renew_at: Mapped[datetime | None]
    renewing_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    #: the address of the user
    email: Mapped[str] = column_property(select(UserRow.email).where(UserRow.id == user_id).scalar_subquery())


class RevocationRow(TenantRow):
    """Tokens of a removed connection that are not revoked yet. The trigger of `mcp_connections` inserts these rows."""

    __tablename__ = "mcp_revocations"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    server_id: Mapped[UUID]
    user_id: Mapped[UUID]
    server: Mapped[str]
    server_url: Mapped[str]
    user_oauth: Mapped[dict[str, Any]] = mapped_column(JSONB)
    sealed_client_secret: Mapped[str | None]
    revocation_url: Mapped[str]
    sealed_tokens: Mapped[str]
    #: whether the user has replaced the connection by another one
    replaced: Mapped[bool] = mapped_column(server_default=FetchedValue())
    attempts: Mapped[int] = mapped_column(server_default=FetchedValue())
    due_at: Mapped[datetime] = mapped_column(server_default=FetchedValue())
    created_at: Mapped[datetime] = mapped_column(server_default=FetchedValue())


class ConsentRow(TenantRow):
    __tablename__ = "mcp_consents"

    server_id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    session_id: Mapped[UUID]
    state_digest: Mapped[bytes] = mapped_column(LargeBinary)
    terms: Mapped[dict[str, Any]] = mapped_column(JSONB)
    sealed_verifier: Mapped[str]
    expires_at: Mapped[datetime]


def tokens_context(tenant_id: object, server_id: object, user_id: object) -> bytes:
    """Return the context of a connection's sealed tokens. It binds them to one user and one server."""
    return f"mcp_connection:{tenant_id}:{server_id}:{user_id}".encode()


def verifier_context(tenant_id: object, server_id: object, user_id: object) -> bytes:
    """Return the context of the sealed PKCE verifier of a consent."""
    return f"mcp_consent:{tenant_id}:{server_id}:{user_id}".encode()


class StoredTokens(msgspec.Struct, frozen=True):
    """The sealed tokens of a connection. The representation omits them."""

    access_token: str
    refresh_token: str | None = None

    def __repr__(self) -> str:
        return "StoredTokens()"


_LEASE: Final = text(
    "UPDATE mcp_connections SET renewing_until = now() + make_interval(secs => :seconds)"
    " WHERE id = :id AND sealed_tokens = :sealed AND (renewing_until IS NULL OR renewing_until < now())"
    " RETURNING renewing_until"
)
_STORE: Final = text(
    "UPDATE mcp_connections SET sealed_tokens = :sealed, expires_at = :expires_at, renew_at = :renew_at,"
    " renewing_until = NULL, updated_at = now() WHERE id = :id AND renewing_until = :lease RETURNING id"
)
_RELEASE: Final = text("UPDATE mcp_connections SET renewing_until = NULL WHERE id = :id AND renewing_until = :lease")


async def connection_of(
    session: AsyncSession, server_id: UUID, user_id: UUID, *, lock: bool = False
) -> ConnectionRow | None:
    query = select(ConnectionRow).where(ConnectionRow.server_id == server_id, ConnectionRow.user_id == user_id)
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


async def connections_of_user(session: AsyncSession, user_id: UUID) -> dict[UUID, ConnectionRow]:
    """Return a user's connections by server."""
    rows = await session.scalars(select(ConnectionRow).where(ConnectionRow.user_id == user_id))
    return {row.server_id: row for row in rows}


async def states_of_servers(session: AsyncSession, server_ids: Collection[UUID]) -> dict[UUID, tuple[str, bool]]:
    """Return the names of these servers, and whether they are enabled, by their ids."""
    query = select(McpServerRow.id, McpServerRow.name, McpServerRow.enabled).where(McpServerRow.id.in_(server_ids))
    return {row.id: (row.name, row.enabled) for row in await session.execute(query)} if server_ids else {}


def connections_of_server(server_id: UUID) -> Select[ConnectionRow]:
    """Return the query for a server's connections."""
    query = select(ConnectionRow).where(ConnectionRow.server_id == server_id)
    return query.order_by(ConnectionRow.created_at, ConnectionRow.id)


async def lease(session: AsyncSession, connection_id: UUID, sealed: str | None, seconds: float) -> datetime | None:
    """Take the right to renew these sealed tokens, and return the end of the lease, which identifies it. None if
    another worker renews them or has renewed them, or if the connection was removed."""
    values = {"id": connection_id, "sealed": sealed, "seconds": seconds}
    lease_end: datetime | None = (await session.execute(_LEASE, values)).scalar()
    return lease_end


async def store_renewed(
    session: AsyncSession,
    connection_id: UUID,
    lease_end: datetime,
    sealed: str | None,
    times: tuple[datetime | None, ...],
) -> bool:
    """Store renewed tokens, or that the consent has ended if `sealed` is None. `times` are the expiry and the time of
    the next renewal. Returns False if the connection was removed, or connected again, meanwhile."""
    expires_at, renew_at = times
    values = {"id": connection_id, "lease": lease_end, "sealed": sealed, "expires_at": expires_at, "renew_at": renew_at}
    return (await session.execute(_STORE, values)).first() is not None


async def release(session: AsyncSession, connection_id: UUID, lease_end: datetime) -> None:
    await session.execute(_RELEASE, {"id": connection_id, "lease": lease_end})


async def replace(session: AsyncSession, former: ConnectionRow) -> None:
    """Remove a connection that the user replaces by another one, and mark the row that the trigger queues."""
    sealed = former.sealed_tokens
    await session.delete(former)
    await session.flush()
    if sealed is not None:
        await session.execute(
            update(RevocationRow)
            .where(RevocationRow.tenant_id == former.tenant_id, RevocationRow.sealed_tokens == sealed)
            .values(replaced=True)
        )


async def queue_revocation(session: AsyncSession, row: ConnectionRow, server: McpServerRecord, sealed: str) -> None:
    """Queue the revocation of sealed tokens that were issued for a connection that was removed or not stored. Beyond
    `MAX_REVOCATIONS` of an organization, the tokens are not revoked, as in the trigger."""
    oauth = server.user_oauth
    assert oauth is not None
    waiting = select(func.count()).where(RevocationRow.tenant_id == row.tenant_id)
    if row.revocation_url is None or (await session.execute(waiting)).scalar_one() >= MAX_REVOCATIONS:
        return
    client = msgspec.to_builtins(oauth)
    sealed_secret = client.pop("sealed_secret")
    session.add(
        RevocationRow(
            id=new_id(), tenant_id=row.tenant_id, server_id=row.server_id, user_id=row.user_id, server=server.name,
            server_url=row.server_url, user_oauth=client, sealed_client_secret=sealed_secret,
            revocation_url=row.revocation_url, sealed_tokens=sealed,
        )
    )  # fmt: skip


async def begin_consent(session: AsyncSession, values: dict[str, Any]) -> None:
    """Store a consent that a user begins. It replaces an earlier one of the same user and server."""
    query = insert(ConsentRow).values(values)
    changed = {name: query.excluded[name] for name in values if name not in {"server_id", "user_id", "tenant_id"}}
    await session.execute(query.on_conflict_do_update(index_elements=["server_id", "user_id"], set_=changed))


async def take_consent(
    session: AsyncSession, tenant_id: TenantId, *, server_id: UUID, user_id: UUID, session_id: UUID, digest: bytes
) -> ConsentRow | None:
    """Remove the consent with this `state` and return it, so that it is used once only. None if there is none, or if it
    belongs to another user, session or server."""
    query = (
        delete(ConsentRow)
        .where(
            ConsentRow.tenant_id == tenant_id,
            ConsentRow.server_id == server_id,
            ConsentRow.user_id == user_id,
            ConsentRow.session_id == session_id,
            ConsentRow.state_digest == digest,
        )
        .returning(ConsentRow)
    )
    return (await session.scalars(query)).one_or_none()
