"""Users' access tokens for MCP servers, in the memory of a worker. Implements the engine's port `UserTokens`.

A call reads its token from memory. The first call of a user to a server reads it from the database, within
`RENEWAL_TIMEOUT_SECONDS`; so do calls in the background, while the token is about to expire. If it is due, one worker
renews it: the one that takes the lease in the row of the connection. The others wait for its result, because an
authorization server may accept a refresh token only once. No database connection is held during the request.

A removed connection is dropped from the memory of all workers by the change feed (topic `mcp_connection`).
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from hmac import compare_digest
from typing import Final
from uuid import UUID

import msgspec
import psycopg
import structlog
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.engine.mcp.errors import McpConnectionRequired
from gatehouse.engine.providers.authentication.renewal import NotAvailable, Renewed
from gatehouse.engine.providers.failure import NO_ACCESS_TOKEN, UNAUTHORIZED, ProviderFailed
from gatehouse.foundation.clock import Clock, utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound import OutboundFailed
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.replica.state import Replica
from gatehouse.platform.mcp.connections import table
from gatehouse.platform.mcp.connections.authorization_servers import (
    REQUEST_TIMEOUT_SECONDS,
    AuthorizationServers,
    GrantRefused,
    IssuedTokens,
    client_secret,
)
from gatehouse.platform.mcp.connections.errors import McpTokensUnavailable
from gatehouse.platform.mcp.connections.paths import page_url
from gatehouse.platform.mcp.connections.table import ConnectionRow, StoredTokens, tokens_context
from gatehouse.policy.mcp import McpServerRecord, McpUserOAuthRecord

log = structlog.get_logger(__name__)

#: Maximum number of tokens in the memory of a worker. The one that was used least recently is dropped.
MAX_CACHED_TOKENS: Final = 10_000
#: Maximum number of concurrent database queries for tokens, so that administration has connections left.
_MAX_QUERIES: Final = 4
_LEASE_SECONDS: Final = 30.0
#: Interval at which a worker looks for the tokens that another one renews.
_POLL_INTERVAL_SECONDS: Final = 0.2
#: Number of times that a call reads a token that is removed again meanwhile.
_MAX_READS: Final = 3
_DATABASE_ERRORS: Final = (SQLAlchemyError, psycopg.Error)


class _Token(msgspec.Struct, frozen=True, eq=False):
    """A token of a connection. `expires_at` is a Unix time. The representation omits the value."""

    value: str
    expires_at: float | None
    connection_id: UUID

    def __repr__(self) -> str:
        return f"_Token(expires_at={self.expires_at})"


class _Cached:
    """The token of one user for one server, as `binding` describes them."""

    def __init__(self, binding: object, clock: Clock) -> None:
        self.binding = binding
        self.token: Renewed[_Token] = Renewed("mcp_user", NO_ACCESS_TOKEN, clock.now)
        #: the value that the server has refused, or None
        self.refused_value: str | None = None


class _Handle:
    """Implements the engine's `UserToken`."""

    def __init__(self, owner: "LiveUserTokens", key: tuple[UUID, UUID], entry: _Cached, token: _Token) -> None:
        self._owner, self._key, self._entry, self._token = owner, key, entry, token

    @property
    def value(self) -> str:
        return self._token.value

    @property
    def connection_id(self) -> UUID:
        return self._token.connection_id

    def is_current(self) -> bool:
        return self._owner.holds(self._key, self._entry)

    def refuse(self) -> None:
        self._entry.refused_value = self._token.value
        self._entry.token.discard(self._token)


class LiveUserTokens:
    """The users' tokens of one worker."""

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        replica: Replica,
        *,
        clock: Clock,
        servers: AuthorizationServers,
        public_url: str | None,
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._clock = clock
        self._servers = servers
        self._public_url = public_url
        #: by server and user
        self._entries: OrderedDict[tuple[UUID, UUID], _Cached] = OrderedDict()
        self._queries = asyncio.Semaphore(_MAX_QUERIES)
        #: renewals, which must finish even if no call waits for them, because a refresh token may be used up
        self._renewals: dict[UUID, asyncio.Task[_Token]] = {}
        replica.connections_changed = self._drop

    async def get(self, tenant_id: TenantId, user_id: UUID, server: McpServerRecord) -> _Handle:
        """Return the token (see `engine.ports.UserTokens`)."""
        oauth = server.user_oauth
        assert oauth is not None
        key = (server.id, user_id)
        for _ in range(_MAX_READS):
            entry = self._entry(key, (tenant_id, server.url, oauth))
            try:
                load = partial(self._load, tenant_id, user_id, server, oauth, entry)
                token = await entry.token.get(load, server.name)
            except ProviderFailed as failed:
                # Without the entry, a call right after the user has connected reads the database again.
                self._forget(key, entry)
                if failed.reason == UNAUTHORIZED:
                    raise McpConnectionRequired(server.name, page_url(self._public_url, server.name)) from None
                raise McpTokensUnavailable from None
            if self.holds(key, entry):
                return _Handle(self, key, entry, token)
        raise McpTokensUnavailable

    def holds(self, key: tuple[UUID, UUID], entry: object) -> bool:
        return self._entries.get(key) is entry

    async def stop(self) -> None:
        """Wait for the renewals in progress."""
        if self._renewals:
            await asyncio.wait(set(self._renewals.values()), timeout=2 * REQUEST_TIMEOUT_SECONDS)

    def _entry(self, key: tuple[UUID, UUID], binding: object) -> _Cached:
        entry = self._entries.get(key)
        if entry is None or entry.binding != binding:
            entry = self._entries[key] = _Cached(binding, self._clock)
            if len(self._entries) > MAX_CACHED_TOKENS:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        return entry

    def _forget(self, key: tuple[UUID, UUID], entry: _Cached) -> None:
        if self.holds(key, entry):
            del self._entries[key]

    def _drop(self, keys: Sequence[str] | None) -> None:
        """Drop the tokens of these connections (see `replica.queries.mcp_connections`), or all tokens."""
        if keys is None:
            self._entries.clear()
            return
        servers: set[UUID] = set()
        for key in keys:
            server_id, _, user_id = key.partition("/")
            if user_id:
                self._entries.pop((UUID(server_id), UUID(user_id)), None)
            else:
                servers.add(UUID(server_id))
        if servers:
            for place in [place for place in self._entries if place[0] in servers]:
                del self._entries[place]

    async def _load(
        self,
        tenant_id: TenantId,
        user_id: UUID,
        server: McpServerRecord,
        oauth: McpUserOAuthRecord,
        entry: _Cached,
    ) -> _Token:
        """Read the token, and renew it if it is due or was refused. Raises `NotAvailable`."""
        while True:
            row = await self._read(tenant_id, user_id, server)
            if row is None or row.sealed_tokens is None or not _is_for(row, server, oauth):
                raise NotAvailable("the user has not connected an account", is_refused=True)
            tokens = self._opened(row.sealed_tokens, row)
            is_refused = entry.refused_value is not None and compare_digest(
                tokens.access_token.encode(), entry.refused_value.encode()
            )
            is_due = is_refused or (row.renew_at is not None and row.renew_at <= utc_now())
            if not is_due:
                return _token(row, tokens, row.expires_at)
            if tokens.refresh_token is None and not is_refused and _is_valid(row):
                return _token(row, tokens, row.expires_at)
            renewal = self._renewals.get(row.id)
            if renewal is None:
                renewal = self._renewals[row.id] = asyncio.create_task(self._renew(row, tokens, server, oauth))
                renewal.add_done_callback(partial(self._renewed, row.id))
            try:
                return await asyncio.shield(renewal)
            except _RenewedElsewhere:
                if not is_refused and _is_valid(row):
                    return _token(row, tokens, row.expires_at)
                await asyncio.sleep(_POLL_INTERVAL_SECONDS)

    def _renewed(self, row_id: UUID, done: "asyncio.Task[_Token]") -> None:
        del self._renewals[row_id]
        # Retrieves the exception, so that asyncio does not log it. Nobody may wait any more.
        _ = done.cancelled() or done.exception()

    async def _read(self, tenant_id: TenantId, user_id: UUID, server: McpServerRecord) -> ConnectionRow | None:
        try:
            async with self._queries, self._database.tenant(tenant_id) as session:
                return await table.connection_of(session, server.id, user_id)
        except _DATABASE_ERRORS:
            raise NotAvailable("the database does not answer") from None

    async def _renew(
        self, row: ConnectionRow, tokens: StoredTokens, server: McpServerRecord, oauth: McpUserOAuthRecord
    ) -> _Token:
        """Renew the tokens under the lease of the row. Raises `NotAvailable`, `_RenewedElsewhere`."""
        try:
            async with self._queries, self._database.tenant(row.tenant_id) as session:
                lease = await table.lease(session, row.id, row.sealed_tokens, _LEASE_SECONDS)
                await session.commit()
        except _DATABASE_ERRORS:
            raise NotAvailable("the database does not answer") from None
        if lease is None:
            raise _RenewedElsewhere
        issued = await self._issued(row, tokens, server, oauth, lease)
        is_stored = await self._store(row, lease, issued, server)
        if issued is None:
            raise NotAvailable("the consent has ended", is_refused=True)
        if not is_stored:
            raise NotAvailable("the connection was removed", is_refused=True)
        return _token(row, issued.tokens, issued.expires_at)

    async def _issued(
        self,
        row: ConnectionRow,
        tokens: StoredTokens,
        server: McpServerRecord,
        oauth: McpUserOAuthRecord,
        lease: datetime,
    ) -> IssuedTokens | None:
        """Return new tokens, or None if the user must consent again. For any other failure, releases the lease and
        raises `NotAvailable`."""
        if tokens.refresh_token is None:
            return None
        try:
            secret = client_secret(self._sealer, row.tenant_id, server, oauth)
            return await self._servers.renew(server, oauth, secret, row.token_url, tokens.refresh_token)
        except GrantRefused as refused:
            if refused.is_final:
                return None
            failure = NotAvailable("the authorization server refuses the gateway's client")
        except NotAvailable as error:
            failure = error
        except OutboundFailed as error:
            failure = NotAvailable(error.reason)
        await self._release(row, lease)
        raise failure

    async def _store(
        self, row: ConnectionRow, lease: datetime, issued: IssuedTokens | None, server: McpServerRecord
    ) -> bool:
        """Store renewed tokens, or the end of the consent if `issued` is None, and tell the other workers. If the
        connection was removed meanwhile, queues the revocation of the tokens, and returns False. Raises
        `NotAvailable`."""
        sealed = None
        times: tuple[datetime | None, datetime | None] = (None, None)
        if issued is not None:
            context = tokens_context(row.tenant_id, row.server_id, row.user_id)
            sealed = self._sealer.seal(msgspec.json.encode(issued.tokens), context=context)
            times = (issued.expires_at, issued.renew_at)
        try:
            async with self._database.tenant(row.tenant_id) as session:
                change = Change(session, None, tenant_id=row.tenant_id)
                is_stored = await table.store_renewed(session, row.id, lease, sealed, times)
                if is_stored and issued is None:
                    change.record(
                        "mcp_connection.ended", "mcp_server", row.server_id, name=server.name, user_id=row.user_id
                    )
                if sealed is not None and not is_stored:
                    await table.queue_revocation(session, row, server, sealed)
                if is_stored:
                    change.touch("mcp_connection", f"{row.server_id}/{row.user_id}")
                await change.commit()
        except _DATABASE_ERRORS:
            log.warning("mcp.tokens_not_stored", server=server.name, user_id=str(row.user_id))
            raise NotAvailable("the database does not answer") from None
        return is_stored

    async def _release(self, row: ConnectionRow, lease: datetime) -> None:
        with contextlib.suppress(*_DATABASE_ERRORS):
            async with self._database.tenant(row.tenant_id) as session:
                await table.release(session, row.id, lease)
                await session.commit()

    def _opened(self, sealed: str, row: ConnectionRow) -> StoredTokens:
        context = tokens_context(row.tenant_id, row.server_id, row.user_id)
        try:
            return msgspec.json.decode(self._sealer.open(sealed, context=context), type=StoredTokens)
        except CannotOpen:
            raise NotAvailable("the tokens cannot be opened", is_refused=True) from None


class _RenewedElsewhere(Exception):
    """Another worker renews the tokens."""


def _is_for(row: ConnectionRow, server: McpServerRecord, oauth: McpUserOAuthRecord) -> bool:
    """Return whether the user has consented to this server at this address, by this client, at this authorization
    server."""
    return (row.server_url, row.client_id, row.issuer) == (server.url, oauth.client_id, oauth.issuer)


def _is_valid(row: ConnectionRow) -> bool:
    return row.expires_at is None or row.expires_at > utc_now()


def _token(row: ConnectionRow, tokens: StoredTokens, expires_at: datetime | None) -> _Token:
    return _Token(tokens.access_token, None if expires_at is None else expires_at.timestamp(), row.id)
