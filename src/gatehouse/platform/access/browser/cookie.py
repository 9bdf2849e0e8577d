"""Reads, sets and clears the session cookie."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.platform.request.ports import Host

COOKIE_NAME: Final = "gatehouse_session"


def secret_of(request: Request) -> str | None:
    """Return the cookie's value as the browser sent it, unverified."""
    return request.cookies.get(COOKIE_NAME) or None


def set_cookie(response: Response, secret: str, host: Host) -> None:
    """Set the cookie. It has no maximum age: the browser deletes the cookie when the browser closes, and the cookie is
    void once its session has ended."""
    response.set_cookie(COOKIE_NAME, secret, path="/", httponly=True, samesite="lax", secure=is_over_https(host))


def clear_cookie(response: Response, host: Host) -> None:
    response.delete_cookie(COOKIE_NAME, path="/", httponly=True, samesite="lax", secure=is_over_https(host))


def is_over_https(host: Host) -> bool:
    """Return whether browsers reach this platform over TLS: PUBLIC_URL is an https URL, or this process terminates
    TLS."""
    public = host.settings.public_url or ""
    return public.lower().startswith("https://") or host.settings.tls_cert_path is not None
