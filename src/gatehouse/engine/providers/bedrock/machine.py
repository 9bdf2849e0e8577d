"""The AWS identity of this machine: keys of the environment, the container's role, or the instance's role.

The identity is cached, and renewed in the background before it expires: only the first call of a process waits, for a
bounded time.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from gatehouse.engine.providers.bedrock.signing import SigningIdentity
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.foundation.outbound import OutboundFailed
from gatehouse.foundation.outbound.metadata import request_metadata

#: Sends a metadata request: method, URL, headers.
MetadataRequest: TypeAlias = Callable[[str, str, Mapping[str, str]], Awaitable[bytes]]

#: Timeout of all requests of one renewal together.
RENEWAL_TIMEOUT_SECONDS: Final = 5.0
#: Time before their expiry at which keys are renewed in the background.
RENEW_BEFORE_EXPIRY_SECONDS: Final = 15 * 60
#: Keys with less time until their expiry are not used.
MIN_LIFETIME_SECONDS: Final = 30
#: Interval between renewals: the service returns the same keys until shortly before they expire.
RENEWAL_INTERVAL_SECONDS: Final = 60
RETRY_INTERVAL_SECONDS: Final = 5

_CONTAINER_URL: Final = "http://169.254.170.2"
_INSTANCE_URL: Final = "http://169.254.169.254"
_ROLES_PATH: Final = "/latest/meta-data/iam/security-credentials/"
#: Addresses, in addition to loopback, from which container credentials may be loaded without TLS.
_CONTAINER_ADDRESSES: Final = frozenset(map(ip_address, ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")))


class _Keys(msgspec.Struct, rename="pascal"):
    access_key_id: str
    secret_access_key: str
    token: str | None = None
    expiration: datetime | None = None

    def identity(self) -> SigningIdentity:
        return SigningIdentity(
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            session_token=self.token,
            expires_at=None if self.expiration is None else self.expiration.timestamp(),
        )


_keys = msgspec.json.Decoder(_Keys)


class NoIdentity(Exception):
    """This machine has no role, or its credentials are not available now."""


class Machine:
    """Provides the identity of this machine."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        *,
        request: MetadataRequest = request_metadata,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._environment = environment
        self._request = request
        self._now = now
        self._identity: SigningIdentity | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._not_before = 0.0

    async def get(self) -> SigningIdentity:
        """Return an identity that is valid for at least `MIN_LIFETIME_SECONDS`. Raises `ProviderFailed`."""
        remaining = self._remaining_seconds()
        if remaining < RENEW_BEFORE_EXPIRY_SECONDS and self._renewal is None and self._now() >= self._not_before:
            self._renewal = asyncio.create_task(self._renew())
        if remaining <= MIN_LIFETIME_SECONDS and self._renewal is not None:
            # Shielded, so that a cancelled request does not cancel the renewal for the others.
            await asyncio.shield(self._renewal)
        if self._identity is None or self._remaining_seconds() <= MIN_LIFETIME_SECONDS:
            raise ProviderFailed("no_instance_role")
        return self._identity

    def _remaining_seconds(self) -> float:
        """Return the seconds until the identity expires."""
        if self._identity is None:
            return 0.0
        return float("inf") if self._identity.expires_at is None else self._identity.expires_at - self._now()

    async def _renew(self) -> None:
        interval = RETRY_INTERVAL_SECONDS
        try:
            with contextlib.suppress(NoIdentity, OutboundFailed, OSError, TimeoutError, ValueError):
                async with asyncio.timeout(RENEWAL_TIMEOUT_SECONDS):
                    self._identity = await self._load()
                interval = RENEWAL_INTERVAL_SECONDS
        finally:
            self._not_before = self._now() + interval
            self._renewal = None

    async def _load(self) -> SigningIdentity:
        variable = self._environment.get
        key, secret = variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")
        if key and secret:
            return SigningIdentity(
                access_key_id=key, secret_access_key=secret, session_token=variable("AWS_SESSION_TOKEN")
            )
        path, url = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        if path:
            return _read(await self._request("GET", _CONTAINER_URL + path, {}))
        if url:
            return await self._container(url)
        if variable("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            raise NoIdentity
        return await self._instance(variable("AWS_EC2_METADATA_SERVICE_ENDPOINT", _INSTANCE_URL).rstrip("/"))

    async def _container(self, url: str) -> SigningIdentity:
        if not _is_container_url(url):
            raise NoIdentity
        token = self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        file = self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if file:
            token = (await asyncio.to_thread(Path(file).read_text)).strip()
        return _read(await self._request("GET", url, {"Authorization": token} if token else {}))

    async def _instance(self, base: str) -> SigningIdentity:
        """Load the role of the instance, always with a token (IMDSv2): the service without tokens is open to forged
        requests."""
        ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
        token = {"X-aws-ec2-metadata-token": (await self._request("PUT", f"{base}/latest/api/token", ttl)).decode()}
        role = (await self._request("GET", base + _ROLES_PATH, token)).decode().split("\n")[0]
        if not role:
            raise NoIdentity
        return _read(await self._request("GET", base + _ROLES_PATH + role, token))


def _read(body: bytes) -> SigningIdentity:
    try:
        return _keys.decode(body).identity()
    except (msgspec.DecodeError, RecursionError):
        raise NoIdentity from None


def _is_container_url(url: str) -> bool:
    """Return whether a URL may receive the token: with TLS any URL, without it only loopback and AWS's addresses."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return True
    try:
        address = ip_address(parts.hostname or "")
    except ValueError:
        return False
    return parts.scheme == "http" and (address.is_loopback or address in _CONTAINER_ADDRESSES)
