"""The platform, as an outpost calls it: its keys, the bundle, the records (decisions 8, Wires)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import aiohttp
import msgspec

from gatehouse.foundation.jwt import SigningKey
from gatehouse.outpost.identity import Identity

#: Seconds for an answer beyond those that were asked to be waited.
_PATIENCE: Final = 15.0
#: An issuer that has no address is called so.
_NAMELESS: Final = "gatehouse"


class PlatformAway(Exception):
    """It cannot be reached, or has no answer now; says which."""


class PlatformRefuses(Exception):
    """It does not take this outpost for one of its own, or not this call."""

    def __init__(self, status: int, body: Any) -> None:
        said = body.get("message") or body.get("detail") if isinstance(body, dict) else None
        super().__init__(f"{status}: {said or 'no reason given'}")
        self.status = status
        self.body = body


class Polled(msgspec.Struct, frozen=True):
    """`signed` None: nothing has changed. `retry_after`: seconds that the platform asks for."""

    etag: str
    signed: str | None
    retry_after: float = 0.0


class Platform:
    """Used and closed in one running loop."""

    def __init__(self, url: str, identity: Identity, *, issuer: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._identity = identity
        self._issuer = issuer
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def keys(self) -> list[dict[str, Any]]:
        """The public keys that it signs with. Raises `PlatformAway`."""
        status, _, body = await self._call("GET", "/.well-known/jwks.json", proven=False)
        found = _decoded(body)
        if status != 200 or not isinstance(found, dict):
            raise PlatformAway(f"its key set answers {status}")
        return [key for key in found.get("keys", ()) if isinstance(key, dict)]

    async def bundle(self, etag: str, wait: int) -> Polled:
        """Raises `PlatformAway`, `PlatformRefuses`."""
        headers = {"If-None-Match": etag} if etag else {}
        path = f"/v1/outposts/policy-bundle?wait={wait}"
        status, told, body = await self._call("GET", path, headers=headers, seconds=wait + _PATIENCE)
        if status == 304:
            return Polled(etag, None, float(told.get("Retry-After", 0)))
        if status != 200:
            raise _failed(status, body)
        return Polled(told.get("ETag", ""), body.decode("ascii", "replace"))

    async def hand_in(self, journal_id: UUID, sequence: int, entries: Sequence[bytes]) -> dict[str, Any]:
        """What became of them. Raises `PlatformAway`, `PlatformRefuses` (409 with `expected_sequence`)."""
        body = b'{"journal_id":"%s","sequence":%d,"entries":[%s]}' % (
            str(journal_id).encode(), sequence, b",".join(entries),
        )  # fmt: skip
        headers = {"Content-Type": "application/json"}
        status, _, answer = await self._call("POST", "/v1/outposts/records", headers=headers, body=body, seconds=60.0)
        if status != 200:
            raise _failed(status, answer)
        found = _decoded(answer)
        assert isinstance(found, dict)
        return found

    async def _call(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        seconds: float = _PATIENCE,
        proven: bool = True,
    ) -> tuple[int, Mapping[str, str], bytes]:
        sent = dict(headers or {})
        if proven:
            sent["Authorization"] = f"Bearer {self._identity.token(await self._audience())}"
        if self._session is None:
            # No redirects are followed and no cookies kept: it is one address that is trusted.
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        try:
            async with self._session.request(
                method, self._url + path, headers=sent, data=body, allow_redirects=False,
                ssl=self._identity.context(), timeout=aiohttp.ClientTimeout(total=seconds, connect=5.0),
            ) as answer:  # fmt: skip
                return answer.status, answer.headers, await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise PlatformAway(unreached(error)) from None

    async def _audience(self) -> str:
        """What it calls itself: it believes a token only that names it."""
        if self._issuer is None:
            status, _, body = await self._call("GET", "/.well-known/openid-configuration", proven=False)
            found = _decoded(body) if status == 200 else None
            named = found.get("issuer") if isinstance(found, dict) else None
            # 404: it has no address of its own, and so no such document.
            if status not in {200, 404}:
                raise PlatformAway(f"its configuration answers {status}")
            self._issuer = named if isinstance(named, str) else _NAMELESS
        return self._issuer


def read_keys(keys: Sequence[dict[str, Any]]) -> dict[str, SigningKey]:
    """By `kid`; what is no key for signatures is passed over."""
    found = {}
    for each in keys:
        try:
            key = SigningKey.from_jwk(each)
        except ValueError:
            continue
        found[key.kid] = key
    return found


def unreached(error: Exception) -> str:
    """Why a call had no answer, for an operator."""
    if isinstance(error, aiohttp.ClientConnectorError):
        # Its own text names an object in memory.
        return f"cannot connect to {error.host}:{error.port} ({error.os_error})"
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _failed(status: int, body: bytes) -> Exception:
    if status in {429, 503} or status >= 500:
        return PlatformAway(f"it answers {status}")
    return PlatformRefuses(status, _decoded(body))


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
