"""The AWS identity of this machine: keys of the environment, a role that is assumed with a token file, the container's
role, or the instance's role."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from gatehouse.engine.providers.authentication.renewal import NotAvailable, Renewed
from gatehouse.engine.providers.bedrock.signing import SigningIdentity
from gatehouse.engine.providers.bedrock.web_identity import assume_role
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.metadata import MetadataRequest, request_metadata

#: Name of a role's session, unless the environment specifies another.
_SESSION_NAME: Final = "gatehouse"
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
        self._identity: Renewed[SigningIdentity] = Renewed("aws_machine", "no_instance_role", now)

    @property
    def api_key(self) -> str | None:
        """The Bedrock API key of the environment, which takes precedence over a role."""
        return self._environment.get("AWS_BEARER_TOKEN_BEDROCK")

    async def get(self, outbound: Outbound, provider: str | None = None) -> SigningIdentity:
        """Return a valid identity. `provider` is the id of the provider that needs it, for the log. Raises
        `ProviderFailed`."""
        return await self._identity.get(partial(self._load, outbound), provider)

    async def _load(self, outbound: Outbound) -> SigningIdentity:
        variable = self._environment.get
        key, secret = variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")
        if key and secret:
            return SigningIdentity(
                access_key_id=key, secret_access_key=secret, session_token=variable("AWS_SESSION_TOKEN")
            )
        file, role = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), variable("AWS_ROLE_ARN")
        if file and role:
            return await assume_role(
                outbound,
                region=variable("AWS_REGION") or variable("AWS_DEFAULT_REGION"),
                role=role,
                session=variable("AWS_ROLE_SESSION_NAME") or _SESSION_NAME,
                token=(await asyncio.to_thread(Path(file).read_text)).strip(),
                endpoint=variable("AWS_ENDPOINT_URL_STS"),
            )
        path, url = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        if path:
            return _read(await self._request("GET", _CONTAINER_URL + path, {}))
        if url:
            return await self._container(url)
        if variable("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            raise NotAvailable("AWS_EC2_METADATA_DISABLED is set")
        return await self._instance(variable("AWS_EC2_METADATA_SERVICE_ENDPOINT", _INSTANCE_URL).rstrip("/"))

    async def _container(self, url: str) -> SigningIdentity:
        if not _is_container_url(url):
            raise NotAvailable("AWS_CONTAINER_CREDENTIALS_FULL_URI may not receive a token")
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
            raise NotAvailable("the instance has no role")
        return _read(await self._request("GET", base + _ROLES_PATH + role, token))


def _read(body: bytes) -> SigningIdentity:
    try:
        return _keys.decode(body).identity()
    except (msgspec.DecodeError, RecursionError):
        raise NotAvailable("the credentials are not valid") from None


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
