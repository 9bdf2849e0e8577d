"""Who this machine is to AWS: its environment's keys, its container's role, or its instance's.

Kept, and renewed before it expires while calls go on with what is there: only the first call of a process waits, and
for a bounded time.
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

from gatehouse.engine.providers.bedrock.signing import Identity
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.foundation.outbound import OutboundFailed
from gatehouse.foundation.outbound.metadata import ask_metadata

Ask: TypeAlias = Callable[[str, str, Mapping[str, str]], Awaitable[bytes]]

#: All the questions of one renewal together, in seconds.
RENEWAL_SECONDS: Final = 5.0
#: So long before they expire, keys are renewed beside the calls; so short before, nothing is signed with them.
EARLY_SECONDS: Final = 15 * 60
LATE_SECONDS: Final = 30
#: Between two renewals: the service gives out the same keys until shortly before they expire.
PAUSE_SECONDS: Final = 60
FAILED_PAUSE_SECONDS: Final = 5

_CONTAINER: Final = "http://169.254.170.2"
_INSTANCE: Final = "http://169.254.169.254"
_ROLES: Final = "/latest/meta-data/iam/security-credentials/"
#: Where a container's credentials may be without TLS, beside loopback.
_CONTAINER_ADDRESSES: Final = frozenset(map(ip_address, ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")))


class _Keys(msgspec.Struct, rename="pascal"):
    access_key_id: str
    secret_access_key: str
    token: str | None = None
    expiration: datetime | None = None

    def identity(self) -> Identity:
        return Identity(
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            session_token=self.token,
            expires_at=None if self.expiration is None else self.expiration.timestamp(),
        )


_keys = msgspec.json.Decoder(_Keys)


class NoIdentity(Exception):
    """This machine has no role, or its credentials cannot be had now."""


class Machine:
    """`get` gives an identity that is good for `LATE_SECONDS` at least."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        *,
        ask: Ask = ask_metadata,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._environment = environment
        self._ask = ask
        self._now = now
        self._known: Identity | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._not_before = 0.0

    async def get(self) -> Identity:
        """Raises `ProviderFailed`."""
        left = self._left()
        if left < EARLY_SECONDS and self._renewing is None and self._now() >= self._not_before:
            self._renewing = asyncio.create_task(self._renew())
        if left <= LATE_SECONDS and self._renewing is not None:
            # Whoever leaves while waiting does not take the others' answer along.
            await asyncio.shield(self._renewing)
        if self._known is None or self._left() <= LATE_SECONDS:
            raise ProviderFailed("no_instance_role")
        return self._known

    def _left(self) -> float:
        """Seconds for which the known identity is good."""
        if self._known is None:
            return 0.0
        return float("inf") if self._known.expires_at is None else self._known.expires_at - self._now()

    async def _renew(self) -> None:
        pause = FAILED_PAUSE_SECONDS
        try:
            with contextlib.suppress(NoIdentity, OutboundFailed, OSError, TimeoutError, ValueError):
                async with asyncio.timeout(RENEWAL_SECONDS):
                    self._known = await self._asked()
                pause = PAUSE_SECONDS
        finally:
            self._not_before = self._now() + pause
            self._renewing = None

    async def _asked(self) -> Identity:
        named = self._environment.get
        key, secret = named("AWS_ACCESS_KEY_ID"), named("AWS_SECRET_ACCESS_KEY")
        if key and secret:
            return Identity(access_key_id=key, secret_access_key=secret, session_token=named("AWS_SESSION_TOKEN"))
        path, url = named("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), named("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        if path:
            return _read(await self._ask("GET", _CONTAINER + path, {}))
        if url:
            return await self._container(url)
        if named("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            raise NoIdentity
        return await self._instance(named("AWS_EC2_METADATA_SERVICE_ENDPOINT", _INSTANCE).rstrip("/"))

    async def _container(self, url: str) -> Identity:
        if not _is_container_url(url):
            raise NoIdentity
        token = self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        file = self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if file:
            token = (await asyncio.to_thread(Path(file).read_text)).strip()
        return _read(await self._ask("GET", url, {"Authorization": token} if token else {}))

    async def _instance(self, base: str) -> Identity:
        """By a token always: an instance that still answers without one could be asked by any proxied request."""
        ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
        token = {"X-aws-ec2-metadata-token": (await self._ask("PUT", f"{base}/latest/api/token", ttl)).decode()}
        role = (await self._ask("GET", base + _ROLES, token)).decode().split("\n")[0]
        if not role:
            raise NoIdentity
        return _read(await self._ask("GET", base + _ROLES + role, token))


def _read(body: bytes) -> Identity:
    try:
        return _keys.decode(body).identity()
    except (msgspec.DecodeError, RecursionError):
        raise NoIdentity from None


def _is_container_url(url: str) -> bool:
    """A token goes along, so without TLS only to this machine and to AWS's own addresses."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return True
    try:
        address = ip_address(parts.hostname or "")
    except ValueError:
        return False
    return parts.scheme == "http" and (address.is_loopback or address in _CONTAINER_ADDRESSES)
