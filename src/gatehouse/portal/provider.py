"""The platform as OpenID provider: whom it has signed in (OpenID Connect Core, 3.1; RFC 7636; RFC 9207).

The portal is the confidential application whose id and secret it has for the platform's API already: the same OAuth
client, with the address of `/v1/auth/sso/callback` among its redirect URIs. People are sent to the address that the
platform calls its own; what is asked behind their backs goes to `PLATFORM_URL`, as everything else.
"""

import asyncio
import hashlib
import secrets
import time
from base64 import urlsafe_b64encode
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from gatehouse.foundation.errors import BadRequest, Unauthenticated, Unavailable
from gatehouse.foundation.http import forms
from gatehouse.portal.identity import Caller
from gatehouse.portal.platform import PlatformAway, PlatformClient
from gatehouse.portal.platform_keys import PlatformKeys
from gatehouse.portal.settings import PortalSettings

CALLBACK: Final = "/v1/auth/sso/callback"
#: How long what the provider says of itself is believed.
_KEPT_SECONDS: Final = 300.0
#: After a question that was not answered: nobody else waits for the same.
_AWAY_SECONDS: Final = 1.0


class SignInUnset(Unavailable):
    message = "Single sign-on is not set up: it needs PORTAL_PUBLIC_URL and PLATFORM_URL."


class ProviderAway(Unavailable):
    message = "The platform, where you sign in, does not answer now. Try again in a moment."


class NotAProvider(Unavailable):
    message = (
        "The platform answers, and offers no sign-in: set PUBLIC_URL at the platform, and check that the portal's"
        " PLATFORM_URL is the platform's address."
    )


class SignInFailed(BadRequest):
    message = "This sign-in is over, or did not begin in this browser. Begin again."


class Person(msgspec.Struct, frozen=True):
    """Who signed in, as the platform said at `signed_in_at` (Unix time): `sub` and `tenant_id` together are one person
    for good. The address may change, and is `proven` where their organization on the platform has proven its domain.
    `next` is the page that they came for, `session` what they showed instead of a partial token."""

    sub: str
    tenant_id: UUID
    email: str
    signed_in_at: int
    proven: bool = False
    next: str = "/"
    session: Caller | None = None


class Begun(msgspec.Struct, frozen=True):
    """A sign-in in progress: what the browser keeps until it is back. `next` is one of the portal's own pages, `until`
    Unix time."""

    state: str
    nonce: str
    verifier: str
    next: str
    until: int

    @classmethod
    def new(cls, next_page: str, until: int) -> "Begun":
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, next_page, until)

    @property
    def challenge(self) -> str:
        return urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


class Provider:
    """One a process."""

    def __init__(self, settings: PortalSettings, platform: PlatformClient, keys: PlatformKeys) -> None:
        self._settings = settings
        self._platform = platform
        self._keys = keys
        self._client_id = str(settings.platform_client_id)
        self._callback = f"{settings.portal_public_url}{CALLBACK}"
        self._told: dict[str, Any] = {}
        self._told_until = 0.0
        self._away_until = 0.0
        self._fault: type[Unavailable] = ProviderAway
        self._asking = asyncio.Lock()

    @property
    def configured(self) -> bool:
        return self._platform.configured and self._settings.portal_public_url is not None

    async def issuer(self) -> str:
        """Who the platform says it is. Raises `SignInUnset`, `ProviderAway`, `NotAProvider`."""
        return str((await self._discovery())["issuer"])

    async def address(self, begun: Begun, *, prompt: str | None = None) -> str:
        """Where the browser goes to sign in; with a `prompt`, be it signed in there already. Raises `SignInUnset`,
        `ProviderAway`, `NotAProvider`."""
        asked = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._callback,
            "scope": "openid email",
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": begun.challenge,
            "code_challenge_method": "S256",
        }
        if prompt is not None:
            asked["prompt"] = prompt
        return f"{(await self._discovery())['authorization_endpoint']}?{urlencode(asked)}"

    async def person(self, begun: Begun, code: str) -> Person:
        """Trades the code in. Raises `SignInFailed`, `ProviderAway`, `PlatformUnknown`."""
        secret = self._settings.platform_client_secret
        assert secret is not None
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._callback,
            "code_verifier": begun.verifier,
            "client_id": self._client_id,
            "client_secret": secret.get_secret_value(),
        }
        status, answer = await self._ask("POST", "/oauth/token", form)
        if status >= 500 or status in {401, 429}:
            # 401: it is the portal that it does not know, not the person.
            raise ProviderAway
        if status != 200 or not isinstance(answer, dict):
            raise SignInFailed
        try:
            claims = await self._keys.verify(str(answer.get("id_token", "")), audience=self._client_id)
        except Unauthenticated:
            raise SignInFailed from None
        if not secrets.compare_digest(str(claims.get("nonce", "")).encode(), begun.nonce.encode()):
            raise SignInFailed
        try:
            return Person(
                str(claims["sub"]),
                UUID(claims["tenant_id"]),
                str(claims["email"]),
                signed_in_at=int(claims["iat"]),
                proven=claims.get("email_verified") is True,
                next=begun.next,
            )
        except (KeyError, ValueError, TypeError, AttributeError):
            raise SignInFailed from None

    async def _discovery(self) -> dict[str, Any]:
        if not self.configured:
            raise SignInUnset
        async with self._asking:
            if time.monotonic() >= self._told_until:
                if time.monotonic() < self._away_until:
                    raise self._fault
                try:
                    configuration = await self._discovered()
                except (ProviderAway, NotAProvider) as fault:
                    self._fault, self._away_until = type(fault), time.monotonic() + _AWAY_SECONDS
                    raise
                self._told, self._told_until = configuration, time.monotonic() + _KEPT_SECONDS
        return self._told

    async def _discovered(self) -> dict[str, Any]:
        """Raises `ProviderAway` where nobody answers, `NotAProvider` for whoever is no provider with PKCE."""
        status, answer = await self._ask("GET", "/.well-known/openid-configuration")
        if status >= 500 or status == 429:
            raise ProviderAway
        if status != 200 or not _is_provider(answer):
            raise NotAProvider
        return dict(answer)

    async def _ask(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, Any]:
        headers = {} if form is None else {"Content-Type": forms.MEDIA_TYPE}
        try:
            return await self._platform.ask(method, path, headers, urlencode(form or {}).encode())
        except PlatformAway:
            raise ProviderAway from None


def _is_provider(answer: Any) -> bool:
    """Or somebody else, who answers at its address; without PKCE nobody is sent there either."""
    try:
        return bool(answer["issuer"] and answer["authorization_endpoint"]) and (
            "S256" in answer["code_challenge_methods_supported"]
        )
    except (KeyError, TypeError):
        return False
