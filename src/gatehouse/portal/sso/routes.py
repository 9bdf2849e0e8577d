"""The endpoints of single sign-on (reference 2, Cloud portal). Where a browser sends its cookie instead of a token, the
answer's token is kept in a cookie too."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from gatehouse.foundation.identity import TenantId
from gatehouse.portal import browser
from gatehouse.portal.callers import RESPONSES, Arrived, JustArrived, SignedIn, partial_token
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.members.table import MemberRow
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.provider import CALLBACK
from gatehouse.portal.requests import Changing, Session
from gatehouse.portal.sso import service, table
from gatehouse.portal.sso.schemas import Acceptance, Selection, SignedOut, SsoSession, SsoToken

router = APIRouter(prefix="/v1/auth/sso", tags=["Single sign-on"])

_ARRIVED_SECONDS: Final = 600
_BROWSERS: Final[dict[str, Any]] = {"status_code": 303, "response_class": Response}


@router.get("/login", **_BROWSERS, responses={303: {"description": "To the platform, to sign in."}})
async def login(
    request: Request,
    host: TheHost,
    redirect_uri: Annotated[str | None, Query(description="One of the portal's own pages, to end at.")] = None,
    prompt: Annotated[
        Literal["login", "select_account"] | None,
        Query(description="Asks on the platform too whoever is signed in there already."),
    ] = None,
) -> Response:
    """Sends a browser to the platform to sign in."""
    begun, kept = service.begin(host, browser.own_page(redirect_uri, host))
    answer = RedirectResponse(await host.provider.address(begun, prompt=prompt), 303)
    browser.keep_begun(request, answer, host, begun.state, kept, seconds=service.BEGUN_SECONDS)
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
    kept = browser.held(request, host, browser.begun(request.query_params.get("state", "")))
    begun, told = service.resumed(host, kept, request.scope["query_string"])
    person = await service.arrive(host, begun, told)
    found = await table.memberships(host.database, person)
    # An invitation is accepted by who shows a partial token: whatever they are a member of already.
    invited = not found or person.next == browser.INVITATION
    if len(found) == 1 and not invited:
        answer: Response = RedirectResponse(person.next, 303)
        browser.keep_session(answer, host, (await service.open_session(request, host, person, found[0].org_id)).token)
    else:
        answer = RedirectResponse(browser.INVITATION if invited else browser.ORGANIZATIONS, 303)
        token = await partial_token(host, person, lifetime_seconds=_ARRIVED_SECONDS)
        if person.next != browser.INVITATION:
            # Whoever came to accept an invitation may leave it at that, and go on as a member.
            browser.drop(answer, host, browser.SESSION)
        browser.keep(answer, host, browser.ARRIVED, token, seconds=_ARRIVED_SECONDS)
    browser.drop(answer, host, browser.begun(begun.state))
    return answer


@router.post("/select-org", response_model=SsoToken, responses=RESPONSES)
async def select_org(person: Arrived, request: Request, response: Response, host: TheHost, body: Selection) -> SsoToken:
    """A token of one of your organizations. A member's token that asked for it is refused from the answer on."""
    issued = await service.open_session(request, host, person, TenantId(body.org_id))
    await service.leave_former(request, host)
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
    person: JustArrived, request: Request, response: Response, host: TheHost, body: Acceptance
) -> SsoToken:
    """Makes you a member of the organization that has invited you. The invitation's token is good once, for whoever has
    just signed in with the address that was invited; in another organization than that, with one of a proven domain."""
    issued = await service.accept(request, host, person, body.invite_token)
    await service.leave_former(request, host)
    return _told(request, response, host, issued)


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
    sign in again. A token of the admin key's is replaced by one with the same plan and lifetime, for a year at most."""
    return _told(request, response, host, await service.refresh(change, host, caller))


@router.post("/logout", response_model=SignedOut, responses=RESPONSES)
async def logout(caller: SignedIn, response: Response, host: TheHost, change: Changing) -> SignedOut:
    """Refuses your token from the answer on. At the platform you stay signed in."""
    await service.end(change, caller, "signed out")
    browser.drop(response, host, browser.SESSION, browser.ARRIVED)
    return SignedOut()


def _told(request: Request, response: Response, host: PortalHost, issued: SsoToken) -> SsoToken:
    if "authorization" not in request.headers:
        browser.keep_session(response, host, issued.token)
    return issued
