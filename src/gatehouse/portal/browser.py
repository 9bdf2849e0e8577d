"""What a browser keeps for a person: a session, a sign-in in progress, and who they are while that is not decided.

    SESSION    the organization token: honoured by the pages and under /v1/auth/sso alone, so that no other site's page
               calls the API with a visitor's rights
    ARRIVED    the partial token of somebody who has signed in and has still to say for which organization
    BEGUN      a sign-in in progress, sealed; one for each, so that two tabs may sign in at once

All are out of a script's reach, and sent along by another site's link, but not by its forms. What a cookie alone proves
is done for the portal's own pages only (`refuse_foreign`).
"""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.foundation.errors import FieldFault, Forbidden, Unprocessable
from gatehouse.portal.host import PortalHost

SESSION: Final = "gatehouse_portal"
ARRIVED: Final = "gatehouse_portal_arrived"
BEGUN: Final = "gatehouse_portal_sign_in"

HOME: Final = "/dashboard"
INVITATION: Final = "/invitation"
ORGANIZATIONS: Final = "/organizations"
#: How long somebody who has signed in may go on without the platform being asked again.
SIGNED_IN_SECONDS: Final = 12 * 3600
#: Where a sign-in may end: these and no others, without a query, so that no link leads a person through us elsewhere.
PAGES: Final = frozenset({"/", HOME, "/settings", INVITATION, ORGANIZATIONS})
#: Sign-ins in progress that a browser keeps: an earlier one is dropped.
_MAX_SIGN_INS_IN_PROGRESS: Final = 5
#: Names of their cookies. Others were not set here, and may hold characters that no `Set-Cookie` can name.
_is_begun: Final = re.compile(rf"{BEGUN}_[\w-]+", re.ASCII).fullmatch
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Foreign(Forbidden):
    message = "This was not sent by a page of the portal. Open the page again."


def held(request: Request, host: PortalHost, cookie: str) -> str | None:
    """What the browser shows, believed or not."""
    return request.cookies.get(_name(cookie, host)) or None


def keep(response: Response, host: PortalHost, cookie: str, value: str, *, seconds: int) -> None:
    response.set_cookie(
        _name(cookie, host), value, max_age=seconds, path="/", httponly=True, samesite="lax", secure=_secure(host)
    )


def begun(state: str) -> str:
    """The cookie of the sign-in with this state."""
    return f"{BEGUN}_{state[:16]}"


def keep_begun(request: Request, response: Response, host: PortalHost, state: str, value: str, *, seconds: int) -> None:
    """Keeps the sign-in with this state, and drops the oldest ones beyond `_MAX_SIGN_INS_IN_PROGRESS`."""
    keep(response, host, begun(state), value, seconds=seconds)
    prefix = _name("", host)
    # Browsers send older cookies first (RFC 6265, 5.4).
    ours = [name.removeprefix(prefix) for name in request.cookies if name.startswith(prefix)]
    earlier = list(filter(_is_begun, ours))
    drop(response, host, *earlier[: max(0, len(earlier) + 1 - _MAX_SIGN_INS_IN_PROGRESS)])


def keep_session(response: Response, host: PortalHost, token: str) -> None:
    """The cookie outlives its token: whoever comes back with one that has ended, the platform is asked about."""
    keep(response, host, SESSION, token, seconds=SIGNED_IN_SECONDS)
    drop(response, host, ARRIVED)


def drop(response: Response, host: PortalHost, *cookies: str) -> None:
    for cookie in cookies:
        response.delete_cookie(_name(cookie, host), path="/", httponly=True, samesite="lax", secure=_secure(host))


def refuse_foreign(request: Request, host: PortalHost) -> None:
    """Raises `Foreign` for what would change something and was not sent by one of our own pages. Browsers say which
    page it was, and no page can make them say another."""
    if request.method in _READING:
        return
    origin = request.headers.get("origin")
    ours = host.settings.portal_public_url
    if origin is None and request.headers.get("sec-fetch-site") == "same-origin":
        return
    if ours is None or origin is None or origin.lower() != ours.lower():
        raise Foreign


def own_page(address: str | None, host: PortalHost) -> str:
    """The path of one of the portal's own pages, given as a path or in full. Raises `Unprocessable`."""
    if not address:
        return HOME
    path = address.removeprefix(host.settings.portal_public_url or "")
    if path not in PAGES:
        raise Unprocessable(faults=[FieldFault("redirect_uri", "must be one of the portal's own pages")])
    return path


def _name(cookie: str, host: PortalHost) -> str:
    # With this name no neighbour under the same domain can plant one.
    return f"__Host-{cookie}" if _secure(host) else cookie


def _secure(host: PortalHost) -> bool:
    return (host.settings.portal_public_url or "").lower().startswith("https://")
