"""Checks that a request comes from a page of this platform."""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from gatehouse.foundation.errors import Forbidden
from gatehouse.platform.access.browser.cookie import is_over_https
from gatehouse.platform.request.ports import Host

_SAME_ORIGIN: Final = "same-origin"


class ForeignOrigin(Forbidden):
    code = "foreign_origin"
    message = "Only pages of this platform can exchange the session cookie."


def is_own_origin(origin: str, request: Request, host: Host) -> bool:
    """Return whether an `Origin` header contains this platform: the host that the request was sent to, or
    PUBLIC_URL."""
    names = {request.headers.get("host"), urlsplit(host.settings.public_url or "").netloc}
    schemes = {"https"} if is_over_https(host) else {"https", "http"}
    return origin.lower() in {f"{scheme}://{name}".lower() for scheme in schemes for name in names if name}


def require_same_origin(request: Request, host: Host) -> None:
    """Check that a script of a page of this platform sent the request. Raises `ForeignOrigin`.

    `Origin` is required: browsers send it with every POST. `Sec-Fetch-Site` is checked where it is present, because
    browsers leave it out on connections without TLS.
    """
    origin = request.headers.get("origin")
    if origin is None or not is_own_origin(origin, request, host):
        raise ForeignOrigin
    if request.headers.get("sec-fetch-site", _SAME_ORIGIN) != _SAME_ORIGIN:
        raise ForeignOrigin
