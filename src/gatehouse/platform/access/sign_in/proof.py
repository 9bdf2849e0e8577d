"""The proof that a form came from a page of ours: another site can post a form here, but neither read the cookie that
the proof is made of nor the page that holds it."""

import hashlib
import hmac
import re
import secrets
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.foundation.errors import Forbidden
from gatehouse.platform.access.browser.cookie import over_https
from gatehouse.platform.ports import Host

_COOKIE: Final = "gatehouse_form"
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}").fullmatch


class FormExpired(Forbidden):
    message = "This form has expired, or came from somewhere else. Open the page again."


def secret_for(request: Request) -> str:
    """What the browser has already, so that two open pages do not spoil each other; else a new one."""
    held = request.cookies.get(_COOKIE, "")
    return held if _SECRET(held) else secrets.token_urlsafe(32)


def of(secret: str) -> str:
    return hmac.digest(secret.encode(), b"gatehouse form", hashlib.sha256).hex()


def keep(response: Response, secret: str, host: Host) -> None:
    response.set_cookie(_COOKIE, secret, path="/", httponly=True, samesite="lax", secure=over_https(host))


def forget(response: Response) -> None:
    """At sign-in and sign-out: whoever planted a cookie before knows no proof after."""
    response.delete_cookie(_COOKIE, path="/")


def check(request: Request, given: str, host: Host) -> None:
    """Raises `FormExpired`."""
    held = request.cookies.get(_COOKIE, "")
    if not _SECRET(held) or not hmac.compare_digest(of(held).encode(), given.encode()):
        raise FormExpired
    # A neighbour under the same domain, or whoever answers for us where there is no TLS, can plant cookies, but not say
    # that it is us.
    origin = request.headers.get("origin")
    names = {request.headers.get("host"), urlsplit(host.settings.public_url or "").netloc}
    schemes = {"https"} if over_https(host) else {"https", "http"}
    ours = {f"{scheme}://{name}".lower() for scheme in schemes for name in names if name}
    if origin is not None and origin.lower() not in ours:
        raise FormExpired
