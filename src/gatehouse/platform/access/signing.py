"""Signs this platform's tokens: sessions' access tokens and OAuth clients' M2M tokens alike (decisions 3, JWT)."""

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
from gatehouse.foundation.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.state import Replica

#: The key that signs: its id and its sealed private half.
NEWEST_SIGNING_KEY: Final = (
    "SELECT kid, sealed_private FROM signing_keys WHERE retired_at IS NULL ORDER BY created_at DESC, kid LIMIT 1"
)
_NEWEST: Final = text(NEWEST_SIGNING_KEY)


class NoSigningKey(Unavailable):
    code = "no_signing_key"
    message = "No signing key can be opened, so no token can be issued. Run gatehouse doctor."


class Signer:
    """One a worker. The key is opened once, and again when the `signing_keys` topic says that they changed."""

    def __init__(self, database: Database, sealer: Sealer, replica: Replica, clock: Clock, *, issuer: str) -> None:
        self._database = database
        self._sealer = sealer
        self._replica = replica
        self._clock = clock
        self._issuer = issuer
        self._key: SigningKey | None = None
        #: The master key does not open the key that signs: this worker opens no secret, and is not ready.
        self.cannot_open = False
        #: the published keys at the time of opening; the feed replaces that dictionary whole when keys change
        self._opened_beside: object = None

    async def sign(self, claims: Mapping[str, Any], lifetime_seconds: int, *, audience: str | None = None) -> str:
        """A token that is good from now on, for this platform or for another `audience`, which this one then refuses.

        Adds `iss`, `aud`, `iat`, `exp` and `jti`. Raises `NoSigningKey`."""
        key = await self._current()
        now = int(self._clock.now())
        stamped = {
            **claims,
            "iss": self._issuer,
            "aud": audience or self._issuer,
            "iat": now,
            "exp": now + lifetime_seconds,
            "jti": str(uuid4()),
        }
        return jwt.sign(stamped, key)

    async def sign_document(self, document: bytes, *, kind: str) -> str:
        """See `foundation.jwt.sign_document`; in a thread, for a document may be large. Raises `NoSigningKey`."""
        return await asyncio.to_thread(jwt.sign_document, document, await self._current(), kind=kind)

    async def open(self) -> None:
        """Opens the key ahead. What fails shows in `cannot_open`."""
        with contextlib.suppress(NoSigningKey):
            await self._current()

    async def _current(self) -> SigningKey:
        published = self._replica.signing_keys
        if self._key is None or self._opened_beside is not published:
            self._key = await self._open()
            self._opened_beside = published
        return self._key

    async def _open(self) -> SigningKey:
        async with self._database.service() as session:
            row = (await session.execute(_NEWEST)).first()
        if row is None:
            raise NoSigningKey
        try:
            pem = self._sealer.open(row.sealed_private, context=f"signing_key:{row.kid}".encode())
        except CannotOpen:
            self.cannot_open = True
            raise NoSigningKey from None
        self.cannot_open = False
        return SigningKey.from_pem(pem)
