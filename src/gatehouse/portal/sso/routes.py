"""The endpoints of single sign-on. If a browser sends its cookie instead of a token, the response also sets the new
token as a cookie."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from gatehouse.foundation.identity import TenantId
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.members.table import PortalMemberRow
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.platform_link.openid_provider import CALLBACK_PATH
from gatehouse.portal.request import browser
from gatehouse.portal.request.callers import (
    RESPONSES,
    Arrived,
    JustArrived,
    SignedIn,
    partial_token,
)
from gatehouse.portal.request.injected import Changing, Session
from gatehouse.portal.sso import service, table
from gatehouse.portal.sso.schemas import Acceptance, Selection, SignedOut, SsoSession, SsoToken

router = APIRouter(prefix="/v1/auth/sso", tags=["Single sign-on"])

_PARTIAL_TOKEN_SECONDS: Final = 600
_REDIRECT: Final[dict[str, Any]] = {"status_code": 303, "response_class": Response}


@router.get("/login", **_REDIRECT, responses={303: {"description": "To the platform's sign-in."}})
async def login(
    request: Request,
    host: TheHost,
    redirect_uri: Annotated[
        str | None, Query(description="Page of the portal that is opened after the sign-in.")
    ] = None,
    prompt: Annotated[
        Literal["login", "select_account"] | None,
        Query(description="Makes the platform show its sign-in even if the person is signed in there."),
    ] = None,
) -> Response:
    """Redirects a browser to the platform's sign-in."""
    sign_in, sealed = service.begin(host, browser.own_page(redirect_uri, host))
    redirect = RedirectResponse(await host.provider.address(sign_in, prompt=prompt), 303)
    browser.keep_sign_in(request, redirect, host, sign_in.state, sealed, seconds=service.SIGN_IN_SECONDS)
    return redirect


@router.get(
    CALLBACK_PATH.removeprefix(router.prefix),
    **_REDIRECT,
    responses={
        303: {"description": "Redirects to `redirect_uri`, by default the dashboard. A person with several"
              " organizations is redirected to the choice of one, a person without an organization to the page for"
              " invitations."},
        400: {"description": "The sign-in has expired, or was not started in this browser."},
    },
    openapi_extra={
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
            for name in ("code", "state", "iss", "error")
        ]
    },
)  # fmt: skip
async def callback(request: Request, host: TheHost) -> Response:
    """Completes a sign-in. This is the redirect URI to which the platform redirects the browser."""
    sealed = browser.cookie_value(request, host, browser.sign_in_cookie(request.query_params.get("state", "")))
    sign_in, parameters = service.resumed(host, sealed, request.scope["query_string"])
    person = await service.arrive(host, sign_in, parameters)
    memberships = await table.memberships(host.database, person)
    # To accept an invitation, a person needs a partial token (the proof of a sign-in without an organization), even as
    # a member of another organization.
    invited = not memberships or person.next == browser.INVITATION_PATH
    if len(memberships) == 1 and not invited:
        redirect: Response = RedirectResponse(person.next, 303)
        browser.keep_session(
            redirect, host, (await service.open_session(request, host, person, memberships[0].org_id)).token
        )
    else:
        redirect = RedirectResponse(browser.INVITATION_PATH if invited else browser.ORGANIZATIONS_PATH, 303)
        token = await partial_token(host, person, lifetime_seconds=_PARTIAL_TOKEN_SECONDS)
        if person.next != browser.INVITATION_PATH:
            # Delete the old session. Keep it if the person came for an invitation, because the person may decline.
            browser.delete_cookies(redirect, host, browser.SESSION_COOKIE)
        browser.set_cookie(redirect, host, browser.PARTIAL_COOKIE, token, seconds=_PARTIAL_TOKEN_SECONDS)
    browser.delete_cookies(redirect, host, browser.sign_in_cookie(sign_in.state))
    return redirect


@router.post("/select-org", response_model=SsoToken, responses=RESPONSES)
async def select_org(person: Arrived, request: Request, response: Response, host: TheHost, body: Selection) -> SsoToken:
    """Returns a token for the chosen organization. If you are a member and send your present token, that token is
    refused after this response."""
    issued = await service.open_session(request, host, person, TenantId(body.org_id))
    await service.leave_former(request, host)
    return _with_cookie(request, response, host, issued)


@router.post(
    "/accept-invite",
    response_model=SsoToken,
    responses={
        **RESPONSES,
        404: {"description": "The invitation does not exist, has expired, was used, or was withdrawn."},
        409: {"description": "You are already a member of the organization."},
    },
)
async def accept_invite(
    person: JustArrived, request: Request, response: Response, host: TheHost, body: Acceptance
) -> SsoToken:
    """Makes you a member of the organization that has invited you. The invitation's token can be used once, by a person
    who has just signed in with the invited address. If your platform account belongs to another organization than
    the one that invites you, the organization of your account must have verified the domain of your address."""
    issued = await service.accept(request, host, person, body.invite_token)
    await service.leave_former(request, host)
    return _with_cookie(request, response, host, issued)


@router.get("/session", response_model=SsoSession, responses=RESPONSES)
async def show_session(caller: SignedIn, session: Session) -> SsoSession:
    """Returns your identity, your organization, and the expiry of your session."""
    org = await session.get(OrganizationRow, caller.org_id)
    assert org is not None
    member = None if caller.member_id is None else await session.get(PortalMemberRow, caller.member_id)
    return service.described(caller, org, member)


@router.post("/refresh", response_model=SsoToken, responses=RESPONSES)
async def refresh(caller: SignedIn, request: Request, response: Response, host: TheHost, change: Changing) -> SsoToken:
    """Returns a token that expires later. The old token is refused after this response. Twelve hours after the sign-in
    you have to sign in again. A token that was created with the admin key is replaced by a token with the same
    plan and lifetime. Such a series of tokens ends one year after the first."""
    return _with_cookie(request, response, host, await service.refresh(change, host, caller))


@router.post("/logout", response_model=SignedOut, responses=RESPONSES)
async def logout(caller: SignedIn, response: Response, host: TheHost, change: Changing) -> SignedOut:
    """Revokes your token. It is refused after this response. You stay signed in at the platform."""
    await service.end(change, caller, "signed out")
    browser.delete_cookies(response, host, browser.SESSION_COOKIE, browser.PARTIAL_COOKIE)
    return SignedOut()


def _with_cookie(request: Request, response: Response, host: PortalHost, issued: SsoToken) -> SsoToken:
    if "authorization" not in request.headers:
        browser.keep_session(response, host, issued.token)
    return issued
