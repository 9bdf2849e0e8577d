"""Authenticates clients and issues their access tokens."""

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.changes import RequestOrigin
from gatehouse.foundation.clock import Clock, utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.access.tokens import table
from gatehouse.platform.access.tokens.errors import InvalidClient, InvalidScope, TokensBusy
from gatehouse.platform.access.tokens.failures import FailureThrottle
from gatehouse.platform.access.tokens.form import ClientSecret
from gatehouse.platform.access.tokens.lifetimes import MAX_TOKEN_LIFETIME_SECONDS
from gatehouse.platform.access.tokens.schemas import AccessToken
from gatehouse.platform.access.tokens.table import Client
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.ports import TokenSigner

#: Maximum number of token requests of a worker that use the database at the same time, and that wait for it. They share
#: the few connections of the service role with the change feed, which a flood of guesses must not delay.
_MAX_CONCURRENT_REQUESTS: Final = 2
_MAX_WAITING_REQUESTS: Final = 100


class TokenIssuer:
    """Issues the tokens of clients. Each worker has one issuer."""

    def __init__(self, database: Database, signer: TokenSigner, clock: Clock) -> None:
        self._database = database
        self._signer = signer
        self._failures = FailureThrottle(clock)
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT_REQUESTS)
        self._request_count = 0

    async def issue_for_client(
        self, credentials: ClientSecret, scope: str | None, origin: RequestOrigin, *, audience: str | None = None
    ) -> AccessToken:
        """Authenticate a client and return its access token, for this platform or for `audience` alone. Raises
        `InvalidClient`, `InvalidScope`, `TokensBusy`."""
        async with self._session() as session:
            client = await self._authenticate(session, credentials, origin)
            scopes = _scopes(client, scope)
            await _record_use(session, client)
        lifetime = min(client.token_lifetime_seconds, MAX_TOKEN_LIFETIME_SECONDS)
        claims = {
            "sub": str(client.client_id),
            "client_id": str(client.client_id),
            "token_type": "m2m",
            "scope": " ".join(scopes),
            "rate_limit_tier": client.rate_limit_tier,
        }
        if client.tenant_id is not None:
            claims["tid"] = str(client.tenant_id)
        token = await self._signer.sign(claims, lifetime, audience=audience)
        return AccessToken(access_token=token, token_type="bearer", expires_in=lifetime, scope=claims["scope"])  # noqa: S106

    async def authenticate_for_code(
        self, credentials: ClientSecret, code_digest: bytes, origin: RequestOrigin
    ) -> tuple[Client, TenantId | None]:
        """Authenticate the client that exchanges a code. Return the client, and the tenant of the code or None if the
        code is unknown.

        Raises `InvalidClient`, `TokensBusy`."""
        async with self._session() as session:
            client = await self._authenticate(session, credentials, origin)
            tenant_id = await table.tenant_of_code(session, code_digest)
            await _record_use(session, client)
        return client, tenant_id

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[AsyncSession]:
        """Yield a session of the service role. Raises `TokensBusy`."""
        if self._request_count >= _MAX_CONCURRENT_REQUESTS + _MAX_WAITING_REQUESTS:
            raise TokensBusy
        self._request_count += 1
        try:
            async with self._slots, self._database.service() as session:
                yield session
        finally:
            self._request_count -= 1

    async def _authenticate(self, session: AsyncSession, credentials: ClientSecret, origin: RequestOrigin) -> Client:
        client = await table.find_client(session, credentials.client_id)
        if client is None or not _is_valid_secret(client, credentials.secret, utc_now()):
            if client is not None:
                await self._record_failure(session, client, origin)
            raise InvalidClient
        return client

    async def _record_failure(self, session: AsyncSession, client: Client, origin: RequestOrigin) -> None:
        attempts = self._failures.attempts_to_record(client.client_id)
        if attempts is None:
            return
        change = Change(session, None, origin, tenant_id=client.tenant_id)
        change.record(
            "oauth_token.refused",
            "oauth_client",
            client.client_id,
            outcome="failure",
            reason="wrong_secret" if client.enabled else "disabled",
            attempts=attempts,
        )
        await change.commit()


async def _record_use(session: AsyncSession, client: Client) -> None:
    if not await table.record_use(session, client.client_id):
        raise InvalidClient
    await session.commit()


def _is_valid_secret(client: Client, secret: str | None, now: datetime) -> bool:
    """Return whether the client is enabled, and the secret is its current secret or an earlier secret that is still
    accepted. A public client needs no secret."""
    if secret is None:
        return client.enabled and client.public
    digest = tokens.digest(secret)
    current = hmac.compare_digest(digest, client.secret_digest)
    previous = hmac.compare_digest(digest, client.previous_secret_digest or b"")
    previous_expires_at = client.previous_secret_expires_at
    earlier = [
        hmac.compare_digest(digest, bytes.fromhex(entry["digest"]))
        for entry in client.earlier_secrets
        if now.timestamp() < entry["expires_at"]
    ]
    return client.enabled and (
        current or (previous and previous_expires_at is not None and now < previous_expires_at) or any(earlier)
    )


def _scopes(client: Client, scope: str | None) -> list[str]:
    """Return the requested scopes in the client's order; without a request, all scopes of the client. Raises
    `InvalidScope` if the client does not have a requested scope."""
    requested = set((scope or "").split())
    if not requested:
        return client.scopes
    if not requested <= set(client.scopes):
        raise InvalidScope
    return [scope for scope in client.scopes if scope in requested]
