"""The callers of pages: members with a session, and people who have signed in but are not members yet."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from gatehouse.foundation.errors import Refusal, Unauthenticated
from gatehouse.foundation.jwt import InvalidToken
from gatehouse.portal.errors import PortalOrganizationNotFound, RevokedToken
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.identity import PortalCaller
from gatehouse.portal.members.table import PortalMemberRow
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.platform_link.openid_provider import Person
from gatehouse.portal.request import browser
from gatehouse.portal.request.callers import caller_of_token, person_of_partial_token
from gatehouse.portal.sso import table
from gatehouse.portal.status_cache import person_of


class SignInFirst(Refusal):
    """Redirects the browser to the sign-in, which then redirects it to the page."""

    status = 303
    message = "You have to sign in first."

    def __init__(self, address: str, *, cookie: str | None = None) -> None:
        super().__init__(headers={"Location": address, **({"Set-Cookie": cookie} if cookie else {})})


async def _visitor(request: Request, host: TheHost) -> PortalCaller:
    token = browser.cookie_value(request, host, browser.SESSION_COOKIE)
    if token is None:
        raise SignInFirst(_login(request))
    browser.require_own_page(request, host)
    try:
        return await caller_of_token(request, host, token)
    except Unauthenticated:
        # The token has expired. The platform may still have a session of the person. Otherwise it asks for a sign-in.
        raise SignInFirst(_sign_in_again(request)) from None
    except (RevokedToken, PortalOrganizationNotFound):
        raise SignInFirst("/login?note=ended", cookie=_deleted_session_cookie(host)) from None


async def _newcomer(request: Request, host: TheHost) -> Person:
    """Returns a person who has signed in and may be a member or not."""
    browser.require_own_page(request, host)
    if (token := browser.cookie_value(request, host, browser.PARTIAL_COOKIE)) is not None:
        try:
            return await person_of_partial_token(host, token)
        except InvalidToken:
            raise SignInFirst(_login(request)) from None
    person = await person_of(host.database, await _visitor(request, host))
    if person is None:
        raise SignInFirst(_login(request))
    return person


async def _invited(request: Request, host: TheHost) -> Person:
    """Returns a person whose address the platform has just confirmed."""
    browser.require_own_page(request, host)
    token = browser.cookie_value(request, host, browser.PARTIAL_COOKIE)
    if token is None:
        has_session = browser.cookie_value(request, host, browser.SESSION_COOKIE) is not None
        raise SignInFirst(_sign_in_again(request) if has_session else _login(request))
    try:
        return await person_of_partial_token(host, token)
    except InvalidToken:
        raise SignInFirst(_login(request)) from None


Visitor = Annotated[PortalCaller, Depends(_visitor)]
Newcomer = Annotated[Person, Depends(_newcomer)]
Invited = Annotated[Person, Depends(_invited)]


async def frame(host: PortalHost, caller: PortalCaller, session: AsyncSession) -> dict[str, Any]:
    """Returns the template variables that all pages of a signed-in person need: `org`, `member`, `admin`, and
    `several`, which is whether the person is a member of several organizations."""
    org = await session.get(OrganizationRow, caller.org_id)
    member = None if caller.member_id is None else await session.get(PortalMemberRow, caller.member_id)
    person = await person_of(host.database, caller)
    several = person is not None and len(await table.memberships(host.database, person)) > 1
    return {"org": org, "member": member, "admin": caller.role == "admin", "several": several}


def _sign_in_again(request: Request) -> str:
    """Returns the URL that signs the person in at the platform without the login page. For a POST, returns the URL of
    the login page, because the content of its form is lost."""
    if request.method != "GET":
        return _login(request)
    return f"/v1/auth/sso/login?{urlencode({'redirect_uri': request.url.path})}"


def _login(request: Request) -> str:
    path = request.url.path
    return "/login" if path not in browser.PAGE_PATHS else f"/login?{urlencode({'next': path})}"


def _deleted_session_cookie(host: PortalHost) -> str:
    response = Response()
    browser.delete_cookies(response, host, browser.SESSION_COOKIE)
    return response.headers["set-cookie"]
