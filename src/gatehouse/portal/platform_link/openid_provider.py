"""Signs people in with the platform as OpenID provider (OpenID Connect Core, 3.1; RFC 7636; RFC 9207).

The portal is a confidential client. It uses the same OAuth client as for the platform's API. The client's redirect URIs
must contain the URL of `/v1/auth/sso/callback`. Browsers are redirected to the platform's public URL. The portal's own
calls use `PLATFORM_URL`.
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
from gatehouse.portal.identity import PortalCaller
from gatehouse.portal.platform_link.client import PlatformClient, PortalPlatformUnavailable
from gatehouse.portal.platform_link.platform_keys import PlatformKeys
from gatehouse.portal.settings import PortalSettings

CALLBACK_PATH: Final = "/v1/auth/sso/callback"
#: The provider's configuration is cached for this time.
_CACHE_SECONDS: Final = 300.0
#: For this time after a failed fetch, no new fetch is tried, and callers fail immediately.
_FAILURE_CACHE_SECONDS: Final = 1.0


class SignInNotConfigured(Unavailable):
    message = "Single sign-on is not set up: it needs PORTAL_PUBLIC_URL and PLATFORM_URL."


class PortalIdpUnavailable(Unavailable):
    message = "The platform, where you sign in, does not respond now. Try again in a moment."


class NotAProvider(Unavailable):
    message = (
        "The platform responds, but offers no sign-in: set PUBLIC_URL at the platform, and check that the portal's"
        " PLATFORM_URL is the platform's address."
    )


class SignInFailed(BadRequest):
    message = "This sign-in has expired, or was not started in this browser. Start it again."


class Person(msgspec.Struct, frozen=True):
    """A person who has signed in, with the values that the platform reported at `signed_in_at` (Unix time).

    `sub` and `tenant_id` together identify the person permanently. The address may change. `email_verified` is true if
    the person's organization has verified the domain of the address on the platform. `next` is the page that the person
    opened first. `session` is the portal session of the person. It is None if the person has only signed in and has not
        chosen an organization yet.
    """

    sub: str
    tenant_id: UUID
    email: str
    signed_in_at: int
    email_verified: bool = False
    next: str = "/"
    session: PortalCaller | None = None


class SignIn(msgspec.Struct, frozen=True):
    """A sign-in in progress. The browser stores it until the platform redirects the browser to the portal. `next` is a
    page of the portal. `until` is the Unix time at which the sign-in expires."""

    state: str
    nonce: str
    verifier: str
    next: str
    until: int

    @classmethod
    def new(cls, next_page: str, until: int) -> "SignIn":
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, next_page, until)

    @property
    def challenge(self) -> str:
        return urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


class SignInProvider:
    """The platform's OpenID provider. Its configuration is cached in each process."""

    def __init__(self, settings: PortalSettings, platform: PlatformClient, keys: PlatformKeys) -> None:
        self._settings = settings
        self._platform = platform
        self._keys = keys
        self._client_id = str(settings.platform_client_id)
        self._callback = f"{settings.portal_public_url}{CALLBACK_PATH}"
        self._configuration: dict[str, Any] = {}
        self._configuration_until = 0.0
        self._failed_until = 0.0
        self._fault: type[Unavailable] = PortalIdpUnavailable
        self._discovery_lock = asyncio.Lock()

    @property
    def configured(self) -> bool:
        return self._platform.configured and self._settings.portal_public_url is not None

    async def issuer(self) -> str:
        """Returns the platform's issuer. Raises `SignInNotConfigured`, `PortalIdpUnavailable`, `NotAProvider`."""
        return str((await self._discovery())["issuer"])

    async def address(self, sign_in: SignIn, *, prompt: str | None = None) -> str:
        """Returns the URL at which the browser signs in. `prompt` is the parameter of OpenID Connect: with `login` or
        `select_account` the platform asks for a sign-in even if the person is signed in there. Raises
        `SignInNotConfigured`, `PortalIdpUnavailable`, `NotAProvider`."""
        parameters = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._callback,
            "scope": "openid email",
            "state": sign_in.state,
            "nonce": sign_in.nonce,
            "code_challenge": sign_in.challenge,
            "code_challenge_method": "S256",
        }
        if prompt is not None:
            parameters["prompt"] = prompt
        return f"{(await self._discovery())['authorization_endpoint']}?{urlencode(parameters)}"

    async def person(self, sign_in: SignIn, code: str) -> Person:
        """Exchanges the code for an id token, and returns the person who has signed in. Raises `SignInFailed`,
        `PortalIdpUnavailable`, `PlatformKeysUnavailable`."""
        secret = self._settings.platform_client_secret
        assert secret is not None
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._callback,
            "code_verifier": sign_in.verifier,
            "client_id": self._client_id,
            "client_secret": secret.get_secret_value(),
        }
        status, response = await self._request("POST", "/oauth/token", form)
        if status >= 500 or status in {401, 429}:
            # With a 401 the platform rejects the portal's client and not the person.
            raise PortalIdpUnavailable
        if status != 200 or not isinstance(response, dict):
            raise SignInFailed
        try:
            claims = await self._keys.verify(str(response.get("id_token", "")), audience=self._client_id)
        except Unauthenticated:
            raise SignInFailed from None
        if not secrets.compare_digest(str(claims.get("nonce", "")).encode(), sign_in.nonce.encode()):
            raise SignInFailed
        try:
            return Person(
                str(claims["sub"]),
                UUID(claims["tenant_id"]),
                str(claims["email"]),
                signed_in_at=int(claims["iat"]),
                email_verified=claims.get("email_verified") is True,
                next=sign_in.next,
            )
        except (KeyError, ValueError, TypeError, AttributeError):
            raise SignInFailed from None

    async def _discovery(self) -> dict[str, Any]:
        if not self.configured:
            raise SignInNotConfigured
        async with self._discovery_lock:
            if time.monotonic() >= self._configuration_until:
                if time.monotonic() < self._failed_until:
                    raise self._fault
                try:
                    configuration = await self._fetch_configuration()
                except (PortalIdpUnavailable, NotAProvider) as error:
                    self._fault, self._failed_until = type(error), time.monotonic() + _FAILURE_CACHE_SECONDS
                    raise
                self._configuration, self._configuration_until = configuration, time.monotonic() + _CACHE_SECONDS
        return self._configuration

    async def _fetch_configuration(self) -> dict[str, Any]:
        """Returns the provider's configuration. Raises `PortalIdpUnavailable` if there is no response, if its status is
        429 or 5xx, or if it is not JSON. Raises `NotAProvider` if the response is not the configuration of an OpenID
        provider with PKCE."""
        status, response = await self._request("GET", "/.well-known/openid-configuration")
        if status >= 500 or status == 429:
            raise PortalIdpUnavailable
        if status != 200 or not _is_provider(response):
            raise NotAProvider
        return dict(response)

    async def _request(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, Any]:
        headers = {} if form is None else {"Content-Type": forms.MEDIA_TYPE}
        try:
            return await self._platform.request(method, path, headers, urlencode(form or {}).encode())
        except PortalPlatformUnavailable:
            raise PortalIdpUnavailable from None


def _is_provider(response: Any) -> bool:
    """Returns whether the document is the configuration of an OpenID provider with PKCE, which the sign-in requires."""
    try:
        return bool(response["issuer"] and response["authorization_endpoint"]) and (
            "S256" in response["code_challenge_methods_supported"]
        )
    except (KeyError, TypeError):
        return False
