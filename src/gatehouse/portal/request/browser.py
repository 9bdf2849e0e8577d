"""Cookies of a browser: a session, sign-ins in progress, and a partial sign-in that still needs an organization.

    SESSION_COOKIE    the organization token: accepted by the pages and under /v1/auth/sso alone, so that another site's
                      page cannot call the API with a visitor's rights
    PARTIAL_COOKIE    the partial token of a person who has signed in and has still to choose an organization
    SIGN_IN_COOKIE    prefix of the sealed sign-ins in progress; one cookie each, so that two tabs can sign in at once

Scripts cannot read them. Another site's links send them, its forms do not. A request that only a cookie authenticates
is accepted from the portal's own pages alone (`require_own_page`).
"""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.foundation.errors import FieldFault, Forbidden, Unprocessable
from gatehouse.portal.host import PortalHost

SESSION_COOKIE: Final = "gatehouse_portal"
PARTIAL_COOKIE: Final = "gatehouse_portal_arrived"
SIGN_IN_COOKIE: Final = "gatehouse_portal_sign_in"

HOME_PATH: Final = "/dashboard"
INVITATION_PATH: Final = "/invitation"
ORGANIZATIONS_PATH: Final = "/organizations"
#: Seconds after a sign-in until the platform has to authenticate the person again.
SIGNED_IN_SECONDS: Final = 12 * 3600
#: Paths at which a sign-in may end: no others, and no query, so that the portal is no open redirect.
PAGE_PATHS: Final = frozenset({"/", HOME_PATH, "/settings", INVITATION_PATH, ORGANIZATIONS_PATH})
#: Sign-ins in progress that a browser keeps; the oldest one is dropped.
_MAX_SIGN_INS_IN_PROGRESS: Final = 5
#: Matches the names of their cookies. Other names were not set here, and may contain characters that `Set-Cookie`
#: forbids.
_is_sign_in_cookie: Final = re.compile(rf"{SIGN_IN_COOKIE}_[\w-]+", re.ASCII).fullmatch
_READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class ForeignRequest(Forbidden):
    message = "This was not sent by a page of the portal. Open the page again."


def cookie_value(request: Request, host: PortalHost, cookie: str) -> str | None:
    """Returns the cookie's unverified value, or None."""
    return request.cookies.get(_name(cookie, host)) or None


def set_cookie(response: Response, host: PortalHost, cookie: str, value: str, *, seconds: int) -> None:
    response.set_cookie(
        _name(cookie, host), value, max_age=seconds, path="/", httponly=True, samesite="lax", secure=_secure(host)
    )


def sign_in_cookie(state: str) -> str:
    """Returns the name of the cookie of the sign-in with this state."""
    return f"{SIGN_IN_COOKIE}_{state[:16]}"


def keep_sign_in(
    request: Request, response: Response, host: PortalHost, state: str, value: str, *, seconds: int
) -> None:
    """Stores the sign-in with this state, and deletes the oldest ones beyond `_MAX_SIGN_INS_IN_PROGRESS`."""
    set_cookie(response, host, sign_in_cookie(state), value, seconds=seconds)
    prefix = _name("", host)
    # Browsers send older cookies first (RFC 6265, 5.4).
    portal_cookies = [name.removeprefix(prefix) for name in request.cookies if name.startswith(prefix)]
    earlier = list(filter(_is_sign_in_cookie, portal_cookies))
    delete_cookies(response, host, *earlier[: max(0, len(earlier) + 1 - _MAX_SIGN_INS_IN_PROGRESS)])


def keep_session(response: Response, host: PortalHost, token: str) -> None:
    """Stores the session token. The cookie outlives the token: an expired token leads to another sign-in at the
    platform."""
    set_cookie(response, host, SESSION_COOKIE, token, seconds=SIGNED_IN_SECONDS)
    delete_cookies(response, host, PARTIAL_COOKIE)


def delete_cookies(response: Response, host: PortalHost, *cookies: str) -> None:
    for cookie in cookies:
        response.delete_cookie(_name(cookie, host), path="/", httponly=True, samesite="lax", secure=_secure(host))


def require_own_page(request: Request, host: PortalHost) -> None:
    """Raises `ForeignRequest` for a request that can change something and was not sent by one of the portal's own
    pages. Browsers set the headers that are checked, and no page can forge them."""
    if request.method in _READ_METHODS:
        return
    origin = request.headers.get("origin")
    own_origin = host.settings.portal_public_url
    if origin is None and request.headers.get("sec-fetch-site") == "same-origin":
        return
    if own_origin is None or origin is None or origin.lower() != own_origin.lower():
        raise ForeignRequest


def own_page(address: str | None, host: PortalHost) -> str:
    """Returns the path of one of the portal's own pages from a path or an absolute address. Raises `Unprocessable`."""
    if not address:
        return HOME_PATH
    path = address.removeprefix(host.settings.portal_public_url or "")
    if path not in PAGE_PATHS:
        raise Unprocessable(faults=[FieldFault("redirect_uri", "must be one of the portal's own pages")])
    return path


def _name(cookie: str, host: PortalHost) -> str:
    # The prefix keeps other hosts of the same domain from setting the cookie.
    return f"__Host-{cookie}" if _secure(host) else cookie


def _secure(host: PortalHost) -> bool:
    return (host.settings.portal_public_url or "").lower().startswith("https://")
