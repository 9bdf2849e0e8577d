"""The platform as a SAML service provider. Its entity id and addresses are the same for the identity providers of all
organizations."""

from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request

from gatehouse.platform.access.saml.errors import PublicUrlMissing
from gatehouse.platform.request.ports import Host

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
#: Maximum characters of `RelayState`, equal to the maximum of `next` on the sign-in page.
_MAX_RELAY_STATE_CHARACTERS: Final = 10_000


class ServiceProvider(msgspec.Struct, frozen=True):
    """The addresses of this service provider. `base` is the platform's address without a trailing slash."""

    base: str

    @property
    def entity_id(self) -> str:
        return f"{self.base}/api/saml/metadata"

    @property
    def acs_url(self) -> str:
        return f"{self.base}/api/saml/acs"

    @property
    def slo_url(self) -> str:
        return f"{self.base}/api/saml/slo"

    @property
    def over_https(self) -> bool:
        return self.base.lower().startswith("https://")


def for_request(request: Request, host: Host) -> ServiceProvider:
    """Return the service provider with the base address PUBLIC_URL. If PUBLIC_URL is not set, use the address of the
    request, but only if its host is a loopback address. Raises `PublicUrlMissing` in all other cases.

    Outside of loopback, the address is never taken from the request, because a client can choose the header `Host`. The
    audience that an assertion must have is derived from this address. A client that could choose it could sign in with
    an assertion that was issued for another service.
    """
    if host.settings.public_url is not None:
        return ServiceProvider(host.settings.public_url.rstrip("/"))
    if request.url.hostname in _LOOPBACK:
        return ServiceProvider(f"{request.url.scheme}://{request.url.netloc}")
    raise PublicUrlMissing


def allowed_destination(relay_state: str | None, sp: ServiceProvider, portal: str | None) -> str | None:
    """Return `relay_state` if a sign-in may redirect the browser to it: a path or URL of this platform, or a URL of the
    portal. Return None for anything else, and for any text that a browser could resolve to another host."""
    if not relay_state or len(relay_state) > _MAX_RELAY_STATE_CHARACTERS:
        return None
    if any(c <= " " or c in "\\\x7f" for c in relay_state):
        return None
    if relay_state.startswith("/"):
        return None if relay_state.startswith("//") else relay_state
    origin = _origin(relay_state)
    return relay_state if origin is not None and origin in {_origin(sp.base), _origin(portal or sp.base)} else None


def _origin(url: str) -> tuple[str, str] | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in parts.netloc:
        return None
    return parts.scheme, parts.netloc.lower()
