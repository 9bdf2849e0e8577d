"""Access tokens of Google Cloud: by the JSON key of a service account (RFC 7523), or by the identity of this machine.

The identity is that of the file that `GOOGLE_APPLICATION_CREDENTIALS` names (a service account's key, or a workload
identity federation), or that of the metadata server of Compute Engine, GKE and Cloud Run.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gatehouse.engine.providers.authentication.google_federation import ExternalAccount, exchange
from gatehouse.engine.providers.authentication.renewal import NotAvailable
from gatehouse.engine.providers.authentication.tokens import (
    AccessToken,
    Bearer,
    TokenCache,
    decoded,
    fetch_token,
    read_token,
)
from gatehouse.foundation.jwt import SigningKey, sign
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.metadata import MetadataRequest, request_metadata

TOKEN_URL: Final = "https://oauth2.googleapis.com/token"  # noqa: S105 - a URL
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"

MIN_KEY_BITS: Final = 2048
MAX_KEY_BITS: Final = 4096

_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_SECONDS: Final = 3600
_METADATA_HOST: Final = "169.254.169.254"
_METADATA_PATH: Final = "/computeMetadata/v1/instance/service-accounts/default/token"


class ServiceAccountKey(msgspec.Struct):
    """The fields of a service account's JSON key that are used. `token_uri` is ignored, because an organization must
    not choose the address from which a token is fetched."""

    client_email: str
    private_key: str
    private_key_id: str = ""
    type: str = "service_account"


class _Kind(msgspec.Struct):
    type: str


_key = msgspec.json.Decoder(ServiceAccountKey)
_kind = msgspec.json.Decoder(_Kind)
_external_account = msgspec.json.Decoder(ExternalAccount)


def normalized_key(text: str) -> str:
    """Return a service account's JSON key with only the fields that are used, on one line. Raises `ValueError` with a
    message for the administrator."""
    try:
        key = _key.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError):
        raise ValueError(
            "Must be the JSON key of a service account, with client_email, private_key and private_key_id."
        ) from None
    if key.type != "service_account":
        raise ValueError("Must be the key of a service account: its `type` must be `service_account`.")
    if not _is_rsa_key(key.private_key):
        raise ValueError(f"Its private_key must be an RSA key of {MIN_KEY_BITS} to {MAX_KEY_BITS} bits in PEM.")
    return msgspec.json.encode(key).decode()


def _is_rsa_key(pem: str) -> bool:
    try:
        # The check of the key's numbers takes tens of milliseconds. It is made in a thread before the key is first
        # used.
        key = load_pem_private_key(pem.encode(), None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return isinstance(key, RSAPrivateKey) and MIN_KEY_BITS <= key.key_size <= MAX_KEY_BITS


@lru_cache(maxsize=256)
def _signing_key(pem: str, key_id: str) -> SigningKey:
    """Return the private key for signing. Raises `ValueError`. Loading takes tens of milliseconds."""
    return SigningKey(key_id, SigningKey.from_pem(pem.encode()).key)


class GoogleTokens:
    """The access tokens of Google Cloud, for all providers of this process."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        *,
        token_url: str = TOKEN_URL,
        request: MetadataRequest = request_metadata,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._environment = environment
        self._token_url = token_url
        self._request = request
        self._now = now
        self._by_key = TokenCache("google", "no_access_token", now)
        self._of_machine = TokenCache("google_machine", "no_instance_role", now)

    def of_service_account(self, outbound: Outbound, key: str, provider: str) -> Bearer:
        """Return a transport that authenticates with a service account's JSON key. `provider` is the provider's id, for
        the log."""
        return self._by_key.bearer(outbound, key, partial(self._by_service_account, outbound, key), provider)

    def of_machine(self, outbound: Outbound, provider: str) -> Bearer:
        """Return a transport that authenticates with the identity of this machine."""
        return self._of_machine.bearer(outbound, None, partial(self._by_machine, outbound), provider)

    async def _by_service_account(self, outbound: Outbound, key: str) -> AccessToken:
        # In a thread, because loading the key takes tens of milliseconds.
        assertion = await asyncio.to_thread(self._assertion, key)
        form = {"grant_type": _GRANT, "assertion": assertion}
        return await fetch_token(outbound, self._token_url, form, self._now)

    def _assertion(self, text: str) -> str:
        key = decoded(_key, text)
        try:
            signing_key = _signing_key(key.private_key, key.private_key_id)
        except ValueError:
            raise NotAvailable("the private key of the service account is not valid", is_refused=True) from None
        issued_at = int(self._now())
        claims = {
            "iss": key.client_email,
            "scope": SCOPE,
            "aud": self._token_url,
            "iat": issued_at,
            "exp": issued_at + _ASSERTION_SECONDS,
        }
        return sign(claims, signing_key)

    async def _by_machine(self, outbound: Outbound) -> AccessToken:
        path = self._environment.get("GOOGLE_APPLICATION_CREDENTIALS")
        if not path:
            host = self._environment.get("GCE_METADATA_HOST") or _METADATA_HOST
            body = await self._request("GET", f"http://{host}{_METADATA_PATH}", {"Metadata-Flavor": "Google"})
            return read_token(body, self._now())
        text = await asyncio.to_thread(Path(path).read_text)
        match decoded(_kind, text).type:
            case "service_account":
                return await self._by_service_account(outbound, text)
            case "external_account":
                account = decoded(_external_account, text)
                return await exchange(outbound, account, scope=SCOPE, request=self._request, now=self._now)
        raise NotAvailable("GOOGLE_APPLICATION_CREDENTIALS names a file of an unsupported type")
