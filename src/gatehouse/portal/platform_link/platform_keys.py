"""Fetches and caches the platform's public keys, and verifies the tokens that the platform signs for the portal."""

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

#: Issuer of tokens of a platform without a public URL.
_DEFAULT_ISSUER: Final = "gatehouse"
#: The keys are cached for this time.
_CACHE_SECONDS: Final = 600.0
#: Minimum time between two fetches that unknown key ids cause. Strangers can invent key ids.
_MIN_FETCH_INTERVAL_SECONDS: Final = 5.0
#: For this time after a failed fetch, no new fetch is tried, and callers fail immediately.
_FAILURE_CACHE_SECONDS: Final = 1.0
_MAX_RESPONSE_BYTES: Final = 256 * 1024


class PlatformKeysUnavailable(Unavailable):
    message = "The platform's keys cannot be fetched now."


class PlatformKeys:
    """The cached keys of one process."""

    def __init__(self, settings: PortalSettings, outbound: Outbound, clock: Clock) -> None:
        self._base = (settings.platform_url or "").rstrip("/")
        self._outbound = outbound
        self._clock = clock
        self._keys: Mapping[str, SigningKey] = {}
        self._issuer = _DEFAULT_ISSUER
        self._fetched_at = -_CACHE_SECONDS
        self._failed_at = -_FAILURE_CACHE_SECONDS
        self._fetch_lock = asyncio.Lock()

    async def verify(self, token: str, *, audience: str) -> dict[str, Any]:
        """Returns the claims of a token that the platform has signed for `audience`. Raises `ExpiredToken`,
        `InvalidToken`, and `PlatformKeysUnavailable`."""
        await self._refresh(_CACHE_SECONDS)
        try:
            return self._verified(token, audience)
        except UnknownKey:
            # The key may be new, so fetch the keys again.
            await self._refresh(_MIN_FETCH_INTERVAL_SECONDS)
            return self._verified(token, audience)

    def _verified(self, token: str, audience: str) -> dict[str, Any]:
        return jwt.verify(token, self._keys, issuer=self._issuer, audience=audience, now=self._clock.now())

    async def _refresh(self, seconds: float) -> None:
        """Fetches the keys, unless they have been fetched in the last `seconds`. Raises `PlatformKeysUnavailable`."""
        async with self._fetch_lock:
            if time.monotonic() - self._fetched_at < seconds:
                return
            if not self._base or time.monotonic() - self._failed_at < _FAILURE_CACHE_SECONDS:
                raise PlatformKeysUnavailable
            try:
                self._keys, self._issuer = await self._fetch_keys()
            except PlatformKeysUnavailable:
                self._failed_at = time.monotonic()
                raise
            self._fetched_at = time.monotonic()

    async def _fetch_keys(self) -> tuple[dict[str, SigningKey], str]:
        """Returns the platform's keys and its issuer. Raises `PlatformKeysUnavailable`."""
        status, keys = await self._fetch("/.well-known/jwks.json")
        configuration_status, configuration = await self._fetch("/.well-known/openid-configuration")
        # A 404 means that the platform has no public URL, and therefore no such document.
        if status != 200 or configuration_status not in {200, 404}:
            raise PlatformKeysUnavailable
        try:
            return _read(keys), str(configuration["issuer"]) if configuration_status == 200 else _DEFAULT_ISSUER
        except (KeyError, TypeError):
            # The server at this address is not a platform.
            raise PlatformKeysUnavailable from None

    async def _fetch(self, path: str) -> tuple[int, Any]:
        try:
            reply = await self._outbound.send(OutboundRequest(method="GET", url=self._base + path, headers={}))
            try:
                raw = await reply.read(_MAX_RESPONSE_BYTES)
            finally:
                await reply.close()
            return reply.status, msgspec.json.decode(raw)
        except (OutboundFailed, msgspec.DecodeError):
            raise PlatformKeysUnavailable from None


def _read(key_set: Any) -> dict[str, SigningKey]:
    """Returns the keys by `kid`. Skips entries that are not signature keys."""
    keys = {}
    for jwk in key_set["keys"]:
        try:
            key = SigningKey.from_jwk(jwk)
        except ValueError:
            continue
        keys[key.kid] = key
    return keys
