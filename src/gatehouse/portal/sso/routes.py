"""The endpoints of single sign-on (reference 2, Cloud portal). Where a browser sends its cookie instead of a token, the
answer's token is kept in a cookie too."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from gatehouse.foundation.identity import TenantId
from gatehouse.portal import browser
from gatehouse.portal.callers import RESPONSES, Arrived, SignedIn, partial_audience, shown_token
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.members.table import MemberRow
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.provider import CALLBACK
from gatehouse.portal.requests import Changing, Session
from gatehouse.portal.sso import service, table
from gatehouse.portal.sso.schemas import Acceptance, Selection, SignedOut, SsoSession, SsoToken

router = APIRouter(prefix="/v1/auth/sso", tags=["Single sign-on"])

_ARRIVED_SECONDS: Final = 600
#: Where it is said for which organization, and that there is none.
_SELECTOR: Final = "/organizations"
_NO_ORGANIZATION: Final = "/invitation"
_BROWSERS: Final[dict[str, Any]] = {"status_code": 303, "response_class": Response}


@router.get("/login", **_BROWSERS, responses={303: {"description": "To the platform, to sign in."}})
async def login(
    host: TheHost,
    redirect_uri: Annotated[str | None, Query(description="One of the portal's own pages, to end at.")] = None,
) -> Response:
    """Sends a browser to the platform to sign in."""
    begun, kept = service.begin(host, browser.own_page(redirect_uri, host))
    answer = RedirectResponse(await host.provider.address(begun), 303)
    browser.keep(answer, host, browser.BEGUN, kept, seconds=service.BEGUN_SECONDS)
    return answer


@router.get(
    CALLBACK.removeprefix(router.prefix),
    **_BROWSERS,
    responses={
        303: {"description": "To the dashboard, or wherever the sign-in was to end; to the selector where there is a"
              " choice between organizations; to the page of invitations where there is none."},
        400: {"description": "The sign-in is over, or did not begin in this browser."},
    },
    openapi_extra={
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
            for name in ("code", "state", "iss", "error")
        ]
    },
)  # fmt: skip
async def callback(request: Request, host: TheHost) -> Response:
    """Where the platform sends a browser back to."""
    kept = browser.held(request, host, browser.BEGUN)
    begun, told = service.resumed(host, kept, request.scope["query_string"])
    person = await service.arrive(host, begun, told)
    found = await table.memberships(host.database, person)
    if len(found) == 1:
        answer: Response = RedirectResponse(begun.next, 303)
        _keep(answer, host, await service.open_session(request, host, person, found[0].org_id))
    else:
        answer = RedirectResponse(_SELECTOR if found else _NO_ORGANIZATION, 303)
        token = await host.keys.sign(
            {"sub": person.sub, "tenant_id": str(person.tenant_id), "email": person.email, "next": begun.next},
            lifetime_seconds=_ARRIVED_SECONDS,
            audience=partial_audience(host),
        )
        browser.drop(answer, host, browser.SESSION)
        browser.keep(answer, host, browser.ARRIVED, token, seconds=_ARRIVED_SECONDS)
    browser.drop(answer, host, browser.BEGUN)
    return answer


@router.post("/select-org", response_model=SsoToken, responses=RESPONSES)
async def select_org(person: Arrived, request: Request, response: Response, host: TheHost, body: Selection) -> SsoToken:
    """A token of one of your organizations."""
    issued = await service.open_session(request, host, person, TenantId(body.org_id))
    return _told(request, response, host, issued)


@router.post(
    "/accept-invite",
    response_model=SsoToken,
    responses={
        **RESPONSES,
        404: {"description": "No invitation has this token: it has expired, was used, or was taken back."},
        409: {"description": "You are a member of the organization already."},
    },
)
async def accept_invite(
    person: Arrived, request: Request, response: Response, host: TheHost, body: Acceptance
) -> SsoToken:
    """Makes you a member of the organization that has invited you. The invitation's token is good once, for whoever has
    signed in with the address that was invited."""
    return _told(request, response, host, await service.accept(request, host, person, body.invite_token))


@router.get("/session", response_model=SsoSession, responses=RESPONSES)
async def show_session(caller: SignedIn, session: Session) -> SsoSession:
    """Who you are here, for which organization, and how long."""
    org = await session.get(OrganizationRow, caller.org_id)
    assert org is not None
    member = None if caller.member_id is None else await session.get(MemberRow, caller.member_id)
    return service.described(caller, org, member)


@router.post("/refresh", response_model=SsoToken, responses=RESPONSES)
async def refresh(caller: SignedIn, request: Request, response: Response, host: TheHost, change: Changing) -> SsoToken:
    """Another token, which ends later. The old one is refused from the answer on; twelve hours after the sign-in, you
    sign in again."""
    claims = await host.keys.verify(await shown_token(request, host, browser.SESSION))
    issued = await service.refresh(change, host, caller, int(claims.get("auth_time", claims["iat"])))
    return _told(request, response, host, issued)


@router.post("/logout", response_model=SignedOut, responses=RESPONSES)
async def logout(caller: SignedIn, response: Response, host: TheHost, change: Changing) -> SignedOut:
    """Refuses your token from the answer on. At the platform you stay signed in."""
    await service.end(change, caller, "signed out")
    browser.drop(response, host, browser.SESSION, browser.ARRIVED)
    return SignedOut()


def _told(request: Request, response: Response, host: PortalHost, issued: SsoToken) -> SsoToken:
    if "authorization" not in request.headers:
        _keep(response, host, issued)
    return issued


def _keep(response: Response, host: PortalHost, issued: SsoToken) -> None:
    browser.keep(response, host, browser.SESSION, issued.token, seconds=issued.expires_in)
    browser.drop(response, host, browser.ARRIVED)
