"""Creates and checks the proof that a form came from a page of this platform (CSRF token). Another site can post a form
to this platform, but can read neither the cookie from which the proof is derived nor the page that contains the
proof."""

import hashlib
import hmac
import re
import secrets
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.foundation.errors import Forbidden
from gatehouse.platform.access.browser.cookie import is_over_https
from gatehouse.platform.access.browser.origin import is_own_origin
from gatehouse.platform.request.ports import Host

_COOKIE_NAME: Final = "gatehouse_form"
_match_secret: Final = re.compile(r"[A-Za-z0-9_-]{43}").fullmatch


class FormExpired(Forbidden):
    message = "This form has expired, or came from somewhere else. Open the page again."


def secret_for(request: Request) -> str:
    """Return the secret that the browser already has, so that several open pages stay valid; without one, a new
    secret."""
    secret = request.cookies.get(_COOKIE_NAME, "")
    return secret if _match_secret(secret) else secrets.token_urlsafe(32)


def derive(secret: str) -> str:
    return hmac.digest(secret.encode(), b"gatehouse form", hashlib.sha256).hex()


def set_cookie(response: Response, secret: str, host: Host) -> None:
    response.set_cookie(_COOKIE_NAME, secret, path="/", httponly=True, samesite="lax", secure=is_over_https(host))


def clear_cookie(response: Response) -> None:
    """Clear the cookie. This voids a secret that an attacker planted before a sign-in or sign-out."""
    response.delete_cookie(_COOKIE_NAME, path="/")


def check(request: Request, proof: str, host: Host) -> None:
    """Check a form's proof and origin. Raises `FormExpired`."""
    secret = request.cookies.get(_COOKIE_NAME, "")
    if not _match_secret(secret) or not hmac.compare_digest(derive(secret).encode(), proof.encode()):
        raise FormExpired
    # A sibling domain, or an attacker on a connection without TLS, can plant cookies but cannot forge the origin.
    origin = request.headers.get("origin")
    if origin is not None and not is_own_origin(origin, request, host):
        raise FormExpired
