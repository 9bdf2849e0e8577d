"""The platform's public keys: what it signs for the portal is verified by them (decisions 8, Wires)."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gatehouse.foundation import jwt
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.jwt import SigningKey, UnknownKey
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundRequest
from gatehouse.portal.settings import PortalSettings

#: A platform without an address of its own calls itself so.
_NAMELESS: Final = "gatehouse"
#: How long a key is believed that is not asked for again.
_KEPT_SECONDS: Final = 600.0
#: Between two questions for a key that is not there: strangers can make up as many as they like.
_PAUSE_SECONDS: Final = 5.0
#: After one that was not answered: nobody else waits for the same.
_AWAY_SECONDS: Final = 1.0
_MOST_BYTES: Final = 256 * 1024


class PlatformUnknown(Unavailable):
    message = "The platform cannot be asked for its keys now."


class PlatformKeys:
    """One a process."""

    def __init__(self, settings: PortalSettings, outbound: Outbound, clock: Clock) -> None:
        self._base = (settings.platform_url or "").rstrip("/")
        self._outbound = outbound
        self._clock = clock
        self._keys: Mapping[str, SigningKey] = {}
        self._issuer = _NAMELESS
        self._asked_at = -_KEPT_SECONDS
        self._away_at = -_AWAY_SECONDS
        self._asking = asyncio.Lock()

    async def verify(self, token: str, *, audience: str) -> dict[str, Any]:
        """The claims of what the platform has signed for `audience`. Raises `ExpiredToken`, `InvalidToken`, and
        `PlatformUnknown`."""
        await self._look(_KEPT_SECONDS)
        try:
            return self._verified(token, audience)
        except UnknownKey:
            # It may have been made a moment ago.
            await self._look(_PAUSE_SECONDS)
            return self._verified(token, audience)

    def _verified(self, token: str, audience: str) -> dict[str, Any]:
        return jwt.verify(token, self._keys, issuer=self._issuer, audience=audience, now=self._clock.now())

    async def _look(self, seconds: float) -> None:
        """Asks, unless that was done in the last `seconds`."""
        async with self._asking:
            if time.monotonic() - self._asked_at < seconds:
                return
            if not self._base or time.monotonic() - self._away_at < _AWAY_SECONDS:
                raise PlatformUnknown
            try:
                self._keys, self._issuer = await self._told()
            except PlatformUnknown:
                self._away_at = time.monotonic()
                raise
            self._asked_at = time.monotonic()

    async def _told(self) -> tuple[dict[str, SigningKey], str]:
        """The platform's keys, and what it calls itself. Raises `PlatformUnknown`."""
        status, keys = await self._ask("/.well-known/jwks.json")
        told, configuration = await self._ask("/.well-known/openid-configuration")
        # 404: it has no address of its own, and so no such document.
        if status != 200 or told not in {200, 404}:
            raise PlatformUnknown
        try:
            return _read(keys), str(configuration["issuer"]) if told == 200 else _NAMELESS
        except (KeyError, TypeError):
            # Somebody answers there, who is no platform.
            raise PlatformUnknown from None

    async def _ask(self, path: str) -> tuple[int, Any]:
        try:
            reply = await self._outbound.send(OutboundRequest(method="GET", url=self._base + path, headers={}))
            try:
                raw = await reply.read(_MOST_BYTES)
            finally:
                await reply.close()
            return reply.status, msgspec.json.decode(raw)
        except (OutboundFailed, msgspec.DecodeError):
            raise PlatformUnknown from None


def _read(found: Any) -> dict[str, SigningKey]:
    """By `kid`; what is no key for signatures is passed over."""
    keys = {}
    for each in found["keys"]:
        try:
            key = SigningKey.from_jwk(each)
        except ValueError:
            continue
        keys[key.kid] = key
    return keys
