"""Who this platform is to identity providers: the same to all, whatever organization they belong to."""

from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request

from gatehouse.platform.access.saml.errors import PublicUrlMissing
from gatehouse.platform.ports import Host

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
#: As much as the sign-in page carries along.
_MAX_RELAY_STATE_CHARS: Final = 10_000


class ServiceProvider(msgspec.Struct, frozen=True):
    """`base` is the platform's address without a slash at its end."""

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


def here(request: Request, host: Host) -> ServiceProvider:
    """Raises `PublicUrlMissing`.

    Never from a header alone: who could choose the audience could bring an assertion that was made for somebody else.
    """
    if host.settings.public_url is not None:
        return ServiceProvider(host.settings.public_url.rstrip("/"))
    if request.url.hostname in _LOOPBACK:
        return ServiceProvider(f"{request.url.scheme}://{request.url.netloc}")
    raise PublicUrlMissing


def allowed_destination(relay_state: str | None, sp: ServiceProvider, portal: str | None) -> str | None:
    """Where the browser may be sent after a sign-in: a path of ours, or an address of ours or at the portal. None for
    whatever a browser could read as another place, and for what is no address."""
    if not relay_state or len(relay_state) > _MAX_RELAY_STATE_CHARS:
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
