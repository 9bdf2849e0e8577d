"""The portal's signing keys. They sign organization tokens, and their public keys are at `/.well-known/jwks.json`.

A process reads the table before it uses a key, at most once a second. So a rotation, or the report of a stolen key,
applies in all processes within a second.
"""

import asyncio
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb
from sqlalchemy import text

from gatehouse.foundation import jwt
from gatehouse.foundation.clock import Clock, utc_now
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.jwt import SigningKey
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.portal.change import record_by_hand

#: Maximum lifetime of an organization token. A retired key is published for this time.
MAX_LIFETIME_SECONDS: Final = 365 * 86_400
_REFRESH_INTERVAL_SECONDS: Final = 1.0

_PUBLISHED: Final = text(
    "SELECT kid, public_jwk, sealed_private, retired_at IS NULL AS signs FROM signing_keys"
    " WHERE expires_at IS NULL OR expires_at > now() ORDER BY created_at DESC, kid"
)


class NoPortalSigningKey(Unavailable):
    message = "No signing key can be decrypted, so no token can be issued: check GATEHOUSE_MASTER_KEY."


class Keyring:
    """Reads the keys in the database for one process, signs tokens and verifies them."""

    def __init__(self, database: Database, sealer: Sealer, clock: Clock, *, issuer: str) -> None:
        self.issuer = issuer
        self._database = database
        self._sealer = sealer
        self._clock = clock
        self._published: dict[str, SigningKey] = {}
        #: Id and sealed private key of the key that signs.
        self._newest: tuple[str, str] | None = None
        self._opened: SigningKey | None = None
        self._refreshed_at = -_REFRESH_INTERVAL_SECONDS
        self._refresh_lock = asyncio.Lock()

    async def sign(self, claims: Mapping[str, Any], *, lifetime_seconds: int, audience: str | None = None) -> str:
        """Returns a token that is valid from now on. Its audience is `audience`, by default the portal.

        Adds `iss`, `aud`, `iat`, `exp`, and `jti` if it is missing. Raises `NoPortalSigningKey`.
        """
        await self._refresh()
        key = self._current()
        now = int(self._clock.now())
        stamped = {
            "jti": str(uuid4()),
            **claims,
            "iss": self.issuer,
            "aud": audience or self.issuer,
            "iat": now,
            "exp": now + lifetime_seconds,
        }
        return jwt.sign(stamped, key)

    async def verify(self, token: str, *, audience: str | None = None) -> dict[str, Any]:
        """Returns the claims of a token. Its audience must be `audience`, by default the portal. Raises `ExpiredToken`,
        `InvalidToken`."""
        await self._refresh()
        return jwt.verify(
            token, self._published, issuer=self.issuer, audience=audience or self.issuer, now=self._clock.now()
        )

    async def key_set(self) -> dict[str, Any]:
        await self._refresh()
        return jwt.key_set(self._published.values())

    async def _refresh(self) -> None:
        if time.monotonic() - self._refreshed_at < _REFRESH_INTERVAL_SECONDS:
            return
        async with self._refresh_lock:
            queried_at = time.monotonic()
            if queried_at - self._refreshed_at < _REFRESH_INTERVAL_SECONDS:
                return
            async with self._database.service() as session:
                rows = (await session.execute(_PUBLISHED)).all()
            published = self._published
            self._published = {row.kid: published.get(row.kid) or SigningKey.from_jwk(row.public_jwk) for row in rows}
            self._newest = next(((row.kid, row.sealed_private) for row in rows if row.signs), None)
            self._refreshed_at = queried_at

    def _current(self) -> SigningKey:
        if self._newest is None:
            raise NoPortalSigningKey
        kid, sealed = self._newest
        if self._opened is None or self._opened.kid != kid:
            try:
                pem = self._sealer.open(sealed, context=context(kid))
            except CannotOpen:
                raise NoPortalSigningKey from None
            self._opened = SigningKey.from_pem(pem)
        return self._opened


Connection = psycopg.Connection[tuple[object, ...]]


def ensure_key(connection: Connection, sealer: Sealer) -> None:
    """Adds a key if no key signs."""
    if connection.execute("SELECT 1 FROM portal.signing_keys WHERE retired_at IS NULL").fetchone() is None:
        _add(connection, sealer)


def rotate(connection: Connection, sealer: Sealer, *, stolen: bool = False) -> tuple[str, list[str]]:
    """Adds a new signing key and retires the other keys. Returns the id of the new key, and the ids of the retired
    ones.

    A retired key is published until its last token has expired. If `stolen` is true, the retired keys are refused
    immediately.
    """
    # The lock serializes concurrent rotations.
    connection.execute("LOCK portal.signing_keys IN SHARE ROW EXCLUSIVE MODE")
    until = utc_now() if stolen else utc_now() + timedelta(seconds=MAX_LIFETIME_SECONDS)
    retired = connection.execute(
        "UPDATE portal.signing_keys SET retired_at = coalesce(retired_at, now()),"
        " expires_at = least(expires_at, %s) WHERE retired_at IS NULL OR %s RETURNING kid",
        [until, stolen],
    ).fetchall()
    new_kid, old_kids = _add(connection, sealer), [str(kid) for (kid,) in retired]
    record_by_hand(connection, "signing_key.rotated", "signing_key", new_kid, previous=old_kids, stolen=stolen)
    return new_kid, old_kids


def _add(connection: Connection, sealer: Sealer) -> str:
    key = SigningKey.generate()
    sealed = sealer.seal(key.private_pem(), context=context(key.kid))
    connection.execute(
        # Use clock_timestamp(), because now() is the beginning of this transaction, and another transaction may have
        # added a key since.
        "INSERT INTO portal.signing_keys (kid, public_jwk, sealed_private, created_at)"
        " VALUES (%s, %s, %s, clock_timestamp())",
        [key.kid, Jsonb(key.published()), str(sealed)],
    )
    return key.kid


def context(kid: str) -> bytes:
    return f"portal_signing_key:{kid}".encode()
