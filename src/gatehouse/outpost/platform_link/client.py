"""Client of the platform's endpoints for outposts: keys, bundle and records (docs/outpost-protocol.md)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import aiohttp
import msgspec

from gatehouse.foundation.jwt import SigningKey
from gatehouse.foundation.outbound.operator_client import OperatorClient
from gatehouse.outpost.identity import OutpostIdentity

#: Maximum time for a response, in addition to the wait of a long poll.
_TIMEOUT_SECONDS: Final = 15.0
#: Issuer of tokens of a platform without a public URL.
_DEFAULT_ISSUER: Final = "gatehouse"


class PlatformUnavailable(Exception):
    """The platform cannot be reached, or cannot process the call now. The message contains the reason."""


class PlatformRefusal(Exception):
    """The platform refuses this outpost or this call."""

    def __init__(self, status: int, body: Any) -> None:
        reason = body.get("message") or body.get("detail") if isinstance(body, dict) else None
        super().__init__(f"{status}: {reason or 'no reason given'}")
        self.status = status
        self.body = body


class Polled(msgspec.Struct, frozen=True):
    """The result of a poll. `signed` is the signed bundle, or None if it has not changed. `retry_after` is the number
    of seconds to wait before the next poll."""

    etag: str
    signed: str | None
    retry_after: float = 0.0


class PlatformClient:
    """Client of one platform. Use it and close it on the same running event loop."""

    def __init__(self, url: str, identity: OutpostIdentity, *, issuer: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._identity = identity
        self._issuer = issuer
        self._client = OperatorClient()

    async def close(self) -> None:
        await self._client.close()

    async def keys(self) -> list[dict[str, Any]]:
        """Returns the public keys of the platform's signatures, as JWKs. Raises `PlatformUnavailable`."""
        status, _, body = await self._call("GET", "/.well-known/jwks.json", authenticated=False)
        key_set = _decoded(body)
        if status != 200 or not isinstance(key_set, dict):
            raise PlatformUnavailable(f"the request for its key set was answered with {status}")
        return [key for key in key_set.get("keys", ()) if isinstance(key, dict)]

    async def bundle(self, etag: str, wait: int) -> Polled:
        """Polls for a bundle other than `etag`, for up to `wait` seconds. Raises `PlatformUnavailable`,
        `PlatformRefusal`."""
        headers = {"If-None-Match": etag} if etag else {}
        path = f"/v1/outposts/policy-bundle?wait={wait}"
        status, response_headers, body = await self._call("GET", path, headers=headers, seconds=wait + _TIMEOUT_SECONDS)
        if status == 304:
            return Polled(etag, None, float(response_headers.get("Retry-After", 0)))
        if status != 200:
            raise _failed(status, body)
        return Polled(response_headers.get("ETag", ""), body.decode("ascii", "replace"))

    async def hand_in(self, journal_id: UUID, sequence: int, entries: Sequence[bytes]) -> dict[str, Any]:
        """Uploads entries and returns the platform's result. Raises `PlatformUnavailable`, `PlatformRefusal` (409 with
        `expected_sequence`)."""
        body = b'{"journal_id":"%s","sequence":%d,"entries":[%s]}' % (
            str(journal_id).encode(), sequence, b",".join(entries),
        )  # fmt: skip
        headers = {"Content-Type": "application/json"}
        status, _, response = await self._call("POST", "/v1/outposts/records", headers=headers, body=body, seconds=60.0)
        if status != 200:
            raise _failed(status, response)
        result = _decoded(response)
        assert isinstance(result, dict)
        return result

    async def _call(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        seconds: float = _TIMEOUT_SECONDS,
        authenticated: bool = True,
    ) -> tuple[int, Mapping[str, str], bytes]:
        request_headers = dict(headers or {})
        if authenticated:
            request_headers["Authorization"] = f"Bearer {self._identity.token(await self._audience())}"
        try:
            async with self._client.request(
                method, self._url + path, headers=request_headers, body=body, seconds=seconds,
                tls=self._identity.context(),
            ) as response:  # fmt: skip
                return response.status, response.headers, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise PlatformUnavailable(unreached(error)) from None

    async def _audience(self) -> str:
        """Returns the platform's issuer, which is the only audience that it accepts in a token."""
        if self._issuer is None:
            status, _, body = await self._call("GET", "/.well-known/openid-configuration", authenticated=False)
            configuration = _decoded(body) if status == 200 else None
            issuer = configuration.get("issuer") if isinstance(configuration, dict) else None
            # A 404 means that the platform has no public URL, and therefore no such document.
            if status not in {200, 404}:
                raise PlatformUnavailable(f"the request for its configuration was answered with {status}")
            self._issuer = issuer if isinstance(issuer, str) else _DEFAULT_ISSUER
        return self._issuer


def read_keys(keys: Sequence[dict[str, Any]]) -> dict[str, SigningKey]:
    """Returns the keys by `kid`. Skips entries that are not signature keys."""
    by_id = {}
    for jwk in keys:
        try:
            key = SigningKey.from_jwk(jwk)
        except ValueError:
            continue
        by_id[key.kid] = key
    return by_id


def unreached(error: Exception) -> str:
    """Returns the reason why a call has no response, as a text for operators."""
    if isinstance(error, aiohttp.ClientConnectorError):
        # The text of the error itself contains the memory address of an object.
        return f"cannot connect to {error.host}:{error.port} ({error.os_error})"
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _failed(status: int, body: bytes) -> Exception:
    if status in {429, 503} or status >= 500:
        return PlatformUnavailable(f"it answers {status}")
    return PlatformRefusal(status, _decoded(body))


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
