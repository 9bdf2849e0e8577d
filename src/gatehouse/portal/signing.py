"""The portal's keys: they sign organization tokens, and their public halves are at `/.well-known/jwks.json`.

Every process looks at the table once a second while it is asked, so a rotation or a key cut off is known to all of them
within that.
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
from gatehouse.foundation.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.portal.change import record_by_hand

#: The longest that an organization token may live, and so an old key is published.
MAX_LIFETIME_SECONDS: Final = 365 * 86_400
_LOOK_SECONDS: Final = 1.0

_PUBLISHED: Final = text(
    "SELECT kid, public_jwk, sealed_private, retired_at IS NULL AS signs FROM signing_keys"
    " WHERE expires_at IS NULL OR expires_at > now() ORDER BY created_at DESC, kid"
)


class NoSigningKey(Unavailable):
    message = "No signing key can be opened, so no token can be issued: see GATEHOUSE_MASTER_KEY."


class Keyring:
    """One a process."""

    def __init__(self, database: Database, sealer: Sealer, clock: Clock, *, issuer: str) -> None:
        self.issuer = issuer
        self._database = database
        self._sealer = sealer
        self._clock = clock
        self._published: dict[str, SigningKey] = {}
        #: id and sealed private half of the key that signs
        self._newest: tuple[str, str] | None = None
        self._opened: SigningKey | None = None
        self._looked_at = -_LOOK_SECONDS
        self._looking = asyncio.Lock()

    async def sign(self, claims: Mapping[str, Any], *, lifetime_seconds: int, audience: str | None = None) -> str:
        """A token that is good from now on, here or for another `audience`, which is then refused here.

        Adds `iss`, `aud`, `iat` and `exp`, and `jti` where there is none. Raises `NoSigningKey`."""
        await self._look()
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
        """The claims. Raises `ExpiredToken`, `InvalidToken`."""
        await self._look()
        return jwt.verify(
            token, self._published, issuer=self.issuer, audience=audience or self.issuer, now=self._clock.now()
        )

    async def key_set(self) -> dict[str, Any]:
        await self._look()
        return jwt.key_set(self._published.values())

    async def _look(self) -> None:
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        async with self._looking:
            asked_at = time.monotonic()
            if asked_at - self._looked_at < _LOOK_SECONDS:
                return
            async with self._database.service() as session:
                rows = (await session.execute(_PUBLISHED)).all()
            known = self._published
            self._published = {row.kid: known.get(row.kid) or SigningKey.from_jwk(row.public_jwk) for row in rows}
            self._newest = next(((row.kid, row.sealed_private) for row in rows if row.signs), None)
            self._looked_at = asked_at

    def _current(self) -> SigningKey:
        if self._newest is None:
            raise NoSigningKey
        kid, sealed = self._newest
        if self._opened is None or self._opened.kid != kid:
            try:
                pem = self._sealer.open(sealed, context=context(kid))
            except CannotOpen:
                raise NoSigningKey from None
            self._opened = SigningKey.from_pem(pem)
        return self._opened


Connection = psycopg.Connection[tuple[object, ...]]


def ensure_key(connection: Connection, sealer: Sealer) -> None:
    """Makes a key where none signs yet."""
    if connection.execute("SELECT 1 FROM portal.signing_keys WHERE retired_at IS NULL").fetchone() is None:
        _add(connection, sealer)


def rotate(connection: Connection, sealer: Sealer, *, stolen: bool = False) -> tuple[str, list[str]]:
    """A new key signs from now on; the old ones are published until their last token has expired, or with `stolen`
    refused at once. The answer is the new key's id, and theirs."""
    # Two at once are one after the other.
    connection.execute("LOCK portal.signing_keys IN SHARE ROW EXCLUSIVE MODE")
    until = utc_now() if stolen else utc_now() + timedelta(seconds=MAX_LIFETIME_SECONDS)
    retired = connection.execute(
        "UPDATE portal.signing_keys SET retired_at = coalesce(retired_at, now()),"
        " expires_at = least(expires_at, %s) WHERE retired_at IS NULL OR %s RETURNING kid",
        [until, stolen],
    ).fetchall()
    made, before = _add(connection, sealer), [str(kid) for (kid,) in retired]
    record_by_hand(connection, "signing_key.rotated", "signing_key", made, previous=before, stolen=stolen)
    return made, before


def _add(connection: Connection, sealer: Sealer) -> str:
    key = SigningKey.generate()
    sealed = sealer.seal(key.private_pem(), context=context(key.kid))
    connection.execute(
        # The clock's time: the transaction's is when it began, and another may have come before.
        "INSERT INTO portal.signing_keys (kid, public_jwk, sealed_private, created_at)"
        " VALUES (%s, %s, %s, clock_timestamp())",
        [key.kid, Jsonb(key.published()), str(sealed)],
    )
    return key.kid


def context(kid: str) -> bytes:
    return f"portal_signing_key:{kid}".encode()
