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
        again = f"/v1/auth/sso/login?{urlencode({'redirect_uri': request.url.path})}"
        raise SignInFirst(again if request.method == "GET" else _login(request)) from None
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
    caller = await _visitor(request, host)
    person = None if caller.member_id is None else await person_of(host.database, caller.member_id)
    if person is None:
        raise SignInFirst(_login(request))
    return person


Visitor = Annotated[Caller, Depends(_visitor)]
Newcomer = Annotated[Person, Depends(_newcomer)]


async def frame(host: PortalHost, caller: Caller, session: AsyncSession) -> dict[str, Any]:
    """What every page of a signed-in person names: `org`, `member`, `admin`, and whether there are `several`
    organizations to choose from."""
    org = await session.get(OrganizationRow, caller.org_id)
    member = None if caller.member_id is None else await session.get(MemberRow, caller.member_id)
    person = None if caller.member_id is None else await person_of(host.database, caller.member_id)
    several = person is not None and len(await table.memberships(host.database, person)) > 1
    return {"org": org, "member": member, "admin": caller.role == "admin", "several": several}


def _login(request: Request) -> str:
    path = request.url.path
    return "/login" if path not in browser.PAGES else f"/login?{urlencode({'next': path})}"


def _dropped(host: PortalHost) -> str:
    answer = Response()
    browser.drop(answer, host, browser.SESSION)
    return answer.headers["set-cookie"]
