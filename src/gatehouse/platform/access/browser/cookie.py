"""The cookie itself."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.platform.ports import Host

NAME: Final = "gatehouse_session"


def secret_of(request: Request) -> str | None:
    """What the browser sent, believed or not."""
    return request.cookies.get(NAME) or None


def set_cookie(response: Response, secret: str, host: Host) -> None:
    """Without an age: it goes with the browser, and is worth nothing once its session has ended."""
    response.set_cookie(NAME, secret, path="/", httponly=True, samesite="lax", secure=over_https(host))


def clear_cookie(response: Response, host: Host) -> None:
    response.delete_cookie(NAME, path="/", httponly=True, samesite="lax", secure=over_https(host))


def over_https(host: Host) -> bool:
    """Whether browsers reach this platform over TLS: by its public address, or because it ends TLS itself."""
    public = host.settings.public_url or ""
    return public.lower().startswith("https://") or host.settings.tls_cert_path is not None
