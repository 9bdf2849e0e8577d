"""Who looks at a page."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from gatehouse.foundation.errors import Refusal, Unauthenticated
from gatehouse.foundation.jwt import InvalidToken
from gatehouse.portal import browser
from gatehouse.portal.callers import arrived, of_token
from gatehouse.portal.errors import OrganizationNotFound, TokenRevoked
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.identity import Caller
from gatehouse.portal.members.table import MemberRow
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.provider import Person
from gatehouse.portal.sso import table
from gatehouse.portal.standing import person_of


class SignInFirst(Refusal):
    """The browser goes there, and comes back."""

    status = 303
    message = "You have to sign in first."

    def __init__(self, address: str, *, cookie: str | None = None) -> None:
        super().__init__(headers={"Location": address, **({"Set-Cookie": cookie} if cookie else {})})


async def _visitor(request: Request, host: TheHost) -> Caller:
    token = browser.held(request, host, browser.SESSION)
    if token is None:
        raise SignInFirst(_login(request))
    browser.refuse_foreign(request, host)
    try:
        return await of_token(request, host, token)
    except Unauthenticated:
        # The token has ended: the platform still knows whom it has signed in, or asks.
        raise SignInFirst(_again(request)) from None
    except (TokenRevoked, OrganizationNotFound):
        raise SignInFirst("/login?note=ended", cookie=_dropped(host)) from None


async def _newcomer(request: Request, host: TheHost) -> Person:
    """Somebody who has signed in, member or not."""
    browser.refuse_foreign(request, host)
    if (token := browser.held(request, host, browser.ARRIVED)) is not None:
        try:
            return await arrived(host, token)
        except InvalidToken:
            raise SignInFirst(_login(request)) from None
    person = await person_of(host.database, await _visitor(request, host))
    if person is None:
        raise SignInFirst(_login(request))
    return person


async def _invited(request: Request, host: TheHost) -> Person:
    """Somebody whose address the platform has just told."""
    browser.refuse_foreign(request, host)
    token = browser.held(request, host, browser.ARRIVED)
    if token is None:
        known = browser.held(request, host, browser.SESSION) is not None
        raise SignInFirst(_again(request) if known else _login(request))
    try:
        return await arrived(host, token)
    except InvalidToken:
        raise SignInFirst(_login(request)) from None


Visitor = Annotated[Caller, Depends(_visitor)]
Newcomer = Annotated[Person, Depends(_newcomer)]
Invited = Annotated[Person, Depends(_invited)]


async def frame(host: PortalHost, caller: Caller, session: AsyncSession) -> dict[str, Any]:
    """What every page of a signed-in person names: `org`, `member`, `admin`, and whether there are `several`
    organizations to choose from."""
    org = await session.get(OrganizationRow, caller.org_id)
    member = None if caller.member_id is None else await session.get(MemberRow, caller.member_id)
    person = await person_of(host.database, caller)
    several = person is not None and len(await table.memberships(host.database, person)) > 1
    return {"org": org, "member": member, "admin": caller.role == "admin", "several": several}


def _again(request: Request) -> str:
    """Where the platform is asked without a page of ours between; what a form sent is lost, so there is one then."""
    if request.method != "GET":
        return _login(request)
    return f"/v1/auth/sso/login?{urlencode({'redirect_uri': request.url.path})}"


def _login(request: Request) -> str:
    path = request.url.path
    return "/login" if path not in browser.PAGES else f"/login?{urlencode({'next': path})}"


def _dropped(host: PortalHost) -> str:
    answer = Response()
    browser.drop(answer, host, browser.SESSION)
    return answer.headers["set-cookie"]
