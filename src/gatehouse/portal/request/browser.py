"""Sets and reads the cookies of a browser: its session, its sign-ins in progress, and a partial sign-in, which still
needs an organization.

    SESSION_COOKIE    the organization token; accepted only by the pages and under /v1/auth/sso, so that a page of
                      another site cannot call the API with a visitor's rights
    PARTIAL_COOKIE    the partial token of a person who has signed in and has not chosen an organization yet
    SIGN_IN_COOKIE    prefix of the cookies of sealed sign-ins in progress; each sign-in has a cookie, so that two tabs
                      can sign in at the same time

Scripts cannot read the cookies. Browsers send them when a person follows a link of another site, but not with forms of
another site. If only a cookie authenticates a request, the request is accepted only from the portal's own pages
(`require_own_page`).
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
#: Time after a sign-in at which the platform must authenticate the person again.
SIGNED_IN_SECONDS: Final = 12 * 3600
#: Paths at which a sign-in may end. Other paths and queries are refused, so that the portal does not redirect to other
#: sites.
PAGE_PATHS: Final = frozenset({"/", HOME_PATH, "/settings", INVITATION_PATH, ORGANIZATIONS_PATH})
#: Maximum number of sign-ins in progress in one browser. If there are more, the oldest ones are deleted.
_MAX_SIGN_INS_IN_PROGRESS: Final = 5
#: Matches the names of cookies of sign-ins in progress. Other names were not set by the portal, and may contain
#: characters that `Set-Cookie` forbids.
_is_sign_in_cookie: Final = re.compile(rf"{SIGN_IN_COOKIE}_[\w-]+", re.ASCII).fullmatch
_READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class ForeignRequest(Forbidden):
    message = "The request was not sent by a page of the portal. Open the page again."


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
    """Stores the session token. The cookie expires later than the token, because an expired token causes another
    sign-in at the platform."""
    set_cookie(response, host, SESSION_COOKIE, token, seconds=SIGNED_IN_SECONDS)
    delete_cookies(response, host, PARTIAL_COOKIE)


def delete_cookies(response: Response, host: PortalHost, *cookies: str) -> None:
    for cookie in cookies:
        response.delete_cookie(_name(cookie, host), path="/", httponly=True, samesite="lax", secure=_secure(host))


def require_own_page(request: Request, host: PortalHost) -> None:
    """Raises `ForeignRequest` if the request may change data and was not sent by a page of the portal. Browsers set the
    headers that are checked, and pages cannot forge them."""
    if request.method in _READ_METHODS:
        return
    origin = request.headers.get("origin")
    own_origin = host.settings.portal_public_url
    if origin is None and request.headers.get("sec-fetch-site") == "same-origin":
        return
    if own_origin is None or origin is None or origin.lower() != own_origin.lower():
        raise ForeignRequest


def own_page(address: str | None, host: PortalHost) -> str:
    """Returns the path of a page of the portal. `address` is a path or an absolute URL. Raises `Unprocessable` for any
    other page."""
    if not address:
        return HOME_PATH
    path = address.removeprefix(host.settings.portal_public_url or "")
    if path not in PAGE_PATHS:
        raise Unprocessable(faults=[FieldFault("redirect_uri", "must be one of the portal's own pages")])
    return path


def _name(cookie: str, host: PortalHost) -> str:
    # Because of the prefix, other hosts of the same domain cannot set the cookie.
    return f"__Host-{cookie}" if _secure(host) else cookie


def _secure(host: PortalHost) -> bool:
    return (host.settings.portal_public_url or "").lower().startswith("https://")
