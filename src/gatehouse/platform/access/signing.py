"""Signs this platform's tokens: access tokens of sessions and M2M tokens of OAuth clients (docs/authentication.md)."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import text

from gatehouse.foundation import jwt
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.jwt import SigningKey
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.replica.state import Replica

#: Selects id and sealed private key of the signing key.
NEWEST_SIGNING_KEY: Final = (
    "SELECT kid, sealed_private FROM signing_keys WHERE retired_at IS NULL ORDER BY created_at DESC, kid LIMIT 1"
)
_NEWEST_KEY_QUERY: Final = text(NEWEST_SIGNING_KEY)


class NoSigningKey(Unavailable):
    code = "no_signing_key"
    message = "No signing key can be opened, so no token can be issued. Run gatehouse doctor."


class Signer:
    """Signs tokens with the newest key. Each worker has one signer. It opens the key once, and again after each change
    of the `signing_keys` topic."""

    def __init__(self, database: Database, sealer: Sealer, replica: Replica, clock: Clock, *, issuer: str) -> None:
        self._database = database
        self._sealer = sealer
        self._replica = replica
        self._clock = clock
        self._issuer = issuer
        self._key: SigningKey | None = None
        #: whether the master key failed to open the signing key; the worker is then not ready
        self.cannot_open = False
        #: the replica's dictionary of keys when the key was opened; a change of the keys replaces the dictionary
        self._published_at_opening: object = None

    async def sign(self, claims: Mapping[str, Any], lifetime_seconds: int, *, audience: str | None = None) -> str:
        """Return a signed token that is valid from now on. Without `audience` it is for this platform. This platform
        refuses tokens for another audience, except for its own resources (`live.resources`).

        Adds `iss`, `aud`, `iat`, `exp` and `jti`. Raises `NoSigningKey`."""
        key = await self._current_key()
        now = int(self._clock.now())
        full_claims = {
            **claims,
            "iss": self._issuer,
            "aud": audience or self._issuer,
            "iat": now,
            "exp": now + lifetime_seconds,
            "jti": str(uuid4()),
        }
        return jwt.sign(full_claims, key)

    async def sign_document(self, document: bytes, *, kind: str) -> str:
        """Call `foundation.jwt.sign_document` in a thread, because a document may be large. Raises `NoSigningKey`."""
        return await asyncio.to_thread(jwt.sign_document, document, await self._current_key(), kind=kind)

    async def open(self) -> None:
        """Open the key in advance. If the master key fails to open it, set `cannot_open`."""
        with contextlib.suppress(NoSigningKey):
            await self._current_key()

    async def _current_key(self) -> SigningKey:
        published = self._replica.signing_keys
        if self._key is None or self._published_at_opening is not published:
            self._key = await self._load_key()
            self._published_at_opening = published
        return self._key

    async def _load_key(self) -> SigningKey:
        async with self._database.service() as session:
            row = (await session.execute(_NEWEST_KEY_QUERY)).first()
        if row is None:
            raise NoSigningKey
        try:
            pem = self._sealer.open(row.sealed_private, context=f"signing_key:{row.kid}".encode())
        except CannotOpen:
            self.cannot_open = True
            raise NoSigningKey from None
        self.cannot_open = False
        return SigningKey.from_pem(pem)
