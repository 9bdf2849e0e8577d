"""Who a client is, and the trade of its secret for an access token."""

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import Clock, utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.access.tokens import table
from gatehouse.platform.access.tokens.errors import InvalidClient, InvalidScope, TokensBusy
from gatehouse.platform.access.tokens.failures import Failures
from gatehouse.platform.access.tokens.form import ClientSecret
from gatehouse.platform.access.tokens.lifetimes import LONGEST_SECONDS
from gatehouse.platform.access.tokens.schemas import AccessToken
from gatehouse.platform.access.tokens.table import Client
from gatehouse.platform.change import Change
from gatehouse.platform.ports import TokenSigner

#: Requests of a worker that ask the database at the same time, and those that may wait for it. They share the service
#: role's few connections with the change feed, which must not wait for a flood of guesses.
_AT_ONCE: Final = 2
_WAITING: Final = 100


class Origin(msgspec.Struct, frozen=True):
    """Where a token request came from, for the audit event."""

    request_id: str
    ip: str


class TokenDesk:
    """One a worker."""

    def __init__(self, database: Database, signer: TokenSigner, clock: Clock) -> None:
        self._database = database
        self._signer = signer
        self._failures = Failures(clock)
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._inside = 0

    async def by_client_credentials(self, given: ClientSecret, scope: str | None, origin: Origin) -> AccessToken:
        """Raises `InvalidClient`, `InvalidScope`, `TokensBusy`."""
        async with self._session() as session:
            client = await self._proven(session, given, origin)
            scopes = _scopes(client, scope)
            await _note_use(session, client)
        lifetime = min(client.token_lifetime_seconds, LONGEST_SECONDS)
        claims = {
            "sub": str(client.client_id),
            "client_id": str(client.client_id),
            "token_type": "m2m",
            "scope": " ".join(scopes),
            "rate_limit_tier": client.rate_limit_tier,
        }
        if client.tenant_id is not None:
            claims["tid"] = str(client.tenant_id)
        token = await self._signer.sign(claims, lifetime)
        return AccessToken(access_token=token, token_type="bearer", expires_in=lifetime, scope=claims["scope"])  # noqa: S106

    async def client_and_tenant_of(
        self, given: ClientSecret, code_digest: bytes, origin: Origin
    ) -> tuple[Client, TenantId | None]:
        """Who trades in a code, and whose code it is, None for one that there is not. Raises `InvalidClient`,
        `TokensBusy`."""
        async with self._session() as session:
            client = await self._proven(session, given, origin)
            tenant_id = await table.tenant_of_code(session, code_digest)
            await _note_use(session, client)
        return client, tenant_id

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[AsyncSession]:
        """One of the service role's. Raises `TokensBusy`."""
        if self._inside >= _AT_ONCE + _WAITING:
            raise TokensBusy
        self._inside += 1
        try:
            async with self._places, self._database.service() as session:
                yield session
        finally:
            self._inside -= 1

    async def _proven(self, session: AsyncSession, given: ClientSecret, origin: Origin) -> Client:
        client = await table.client(session, given.client_id)
        if client is None or not _proven(client, given.secret, utc_now()):
            if client is not None:
                await self._record_failure(session, client, origin)
            raise InvalidClient
        return client

    async def _record_failure(self, session: AsyncSession, client: Client, origin: Origin) -> None:
        attempts = self._failures.attempts_to_record(client.client_id)
        if attempts is None:
            return
        change = Change(session, None, tenant_id=client.tenant_id, request_id=origin.request_id, ip=origin.ip)
        change.record(
            "oauth_token.refused",
            "oauth_client",
            client.client_id,
            outcome="failure",
            reason="wrong_secret" if client.enabled else "disabled",
            attempts=attempts,
        )
        await change.commit()


async def _note_use(session: AsyncSession, client: Client) -> None:
    if not await table.note_use(session, client.client_id):
        raise InvalidClient
    await session.commit()


def _proven(client: Client, secret: str | None, now: datetime) -> bool:
    """Whether the secret is the client's, or an earlier one within its grace, and the client enabled."""
    if secret is None:
        return client.enabled and client.public
    given = tokens.digest(secret)
    current = hmac.compare_digest(given, client.secret_digest)
    previous = hmac.compare_digest(given, client.previous_secret_digest or b"")
    until = client.previous_secret_expires_at
    earlier = [
        hmac.compare_digest(given, bytes.fromhex(entry["digest"]))
        for entry in client.earlier_secrets
        if now.timestamp() < entry["expires_at"]
    ]
    return client.enabled and (current or (previous and until is not None and now < until) or any(earlier))


def _scopes(client: Client, asked: str | None) -> list[str]:
    """In the client's order. Raises `InvalidScope` for any that it does not have."""
    wanted = set((asked or "").split())
    if not wanted:
        return client.scopes
    if not wanted <= set(client.scopes):
        raise InvalidScope
    return [scope for scope in client.scopes if scope in wanted]
