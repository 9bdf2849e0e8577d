"""The routes of the pages. Their forms call the families' services."""

from typing import Annotated, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from pydantic import ValidationError
from starlette.responses import RedirectResponse

from gatehouse.foundation.errors import Refusal, Unprocessable
from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.foundation.http.pages import files
from gatehouse.foundation.identity import TenantId
from gatehouse.portal.config_import import service as config_import
from gatehouse.portal.errors import AdminsOnly
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.notifications import table as notifications
from gatehouse.portal.organizations import service as organizations
from gatehouse.portal.organizations.schemas import OrganizationSettings
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.outposts import table as outposts
from gatehouse.portal.pages.rendering import PAGES
from gatehouse.portal.pages.visitors import Invited, Newcomer, Visitor, frame
from gatehouse.portal.platform_link.openid_provider import Person
from gatehouse.portal.request import browser
from gatehouse.portal.request.injected import Changing, Session
from gatehouse.portal.sso import service as sso
from gatehouse.portal.sso import table
from gatehouse.portal.sso.schemas import SsoToken

router = APIRouter(include_in_schema=False)
router.include_router(files.route(PAGES))

_NOTES: Final = {
    "out": "You are signed out here. You are still signed in on the platform: sign out there, too, if other people use"
    " this browser.",
    "ended": "Your session has ended. Sign in again.",
}
#: The dashboard shows this number of open notifications. The API lists all of them.
_DASHBOARD_WINDOW: Final = OffsetWindow(limit=20, offset=0)


@router.get("/")
async def home() -> Response:
    return RedirectResponse(browser.HOME_PATH, 303)


@router.get("/login")
async def login(host: TheHost, next: str = "", note: str = "") -> Response:
    target = next if next in browser.PAGE_PATHS else browser.HOME_PATH
    return PAGES.page(
        "login.html",
        sign_in_url=f"/v1/auth/sso/login?{urlencode({'redirect_uri': target})}",
        other_url=f"/v1/auth/sso/login?{urlencode({'redirect_uri': target, 'prompt': 'select_account'})}",
        configured=host.provider.configured,
        note=_NOTES.get(note),
    )


@router.post("/logout")
async def logout(request: Request, host: TheHost) -> Response:
    """Ends the session if it has not ended yet, and deletes its cookies."""
    browser.require_own_page(request, host)
    await sso.leave(request, host, browser.cookie_value(request, host, browser.SESSION_COOKIE))
    response = RedirectResponse("/login?note=out", 303)
    browser.delete_cookies(response, host, browser.SESSION_COOKIE, browser.PARTIAL_COOKIE)
    return response


@router.get("/organizations")
async def choose(person: Newcomer, host: TheHost) -> Response:
    return PAGES.page("organizations.html", person=person, memberships=await table.memberships(host.database, person))


@router.post("/organizations")
async def chosen(person: Newcomer, request: Request, host: TheHost, org_id: Annotated[UUID, Form()]) -> Response:
    issued = await sso.open_session(request, host, person, TenantId(org_id))
    await sso.leave_former(request, host)
    return _signed_in(host, person, issued)


@router.get("/invitation")
async def invitation(person: Invited, host: TheHost) -> Response:
    return PAGES.page(
        "invitation.html", person=person, memberships=await table.memberships(host.database, person), fault=None
    )


@router.post("/invitation")
async def accept(
    person: Invited, request: Request, host: TheHost, invite_token: Annotated[str, Form(max_length=200)]
) -> Response:
    try:
        issued = await sso.accept(request, host, person, invite_token.strip())
        await sso.leave_former(request, host)
        return _signed_in(host, person, issued)
    except Refusal as error:
        memberships = await table.memberships(host.database, person)
        return PAGES.page("invitation.html", error.status, person=person, memberships=memberships, fault=error.text)


@router.get("/dashboard")
async def dashboard(caller: Visitor, host: TheHost, session: Session) -> Response:
    open_notifications, total = await notifications.listed(session, _DASHBOARD_WINDOW, resolved=False)
    return PAGES.page(
        "dashboard.html",
        **await frame(host, caller, session),
        here="dashboard",
        outposts=(await session.scalars(outposts.all_outposts())).all(),
        notifications=open_notifications,
        total=total,
    )


@router.get("/settings")
async def settings(caller: Visitor, host: TheHost, session: Session, saved: bool = False) -> Response:
    return PAGES.page("settings.html", **await frame(host, caller, session), **_empty_settings(saved=saved))


@router.post("/settings")
async def rename(
    caller: Visitor, host: TheHost, change: Changing, name: Annotated[str, Form(max_length=1000)]
) -> Response:
    if caller.role != "admin":
        raise AdminsOnly
    try:
        body = OrganizationSettings(name=name)
    except ValidationError as error:
        message = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        fields = _empty_settings() | {"fault": f"Name: {message}"}
        return PAGES.page("settings.html", 400, **await frame(host, caller, change.session), **fields)
    org = await change.session.get(OrganizationRow, caller.org_id, with_for_update=True)
    assert org is not None
    await organizations.update(change, org, body.sent())
    return RedirectResponse("/settings?saved=true", 303)


@router.post("/settings/config-import")
async def import_config(
    caller: Visitor,
    request: Request,
    host: TheHost,
    *,
    file: Annotated[UploadFile, File()],
    dry_run: Annotated[bool, Form()] = False,
) -> Response:
    if caller.role != "admin":
        raise AdminsOnly
    content = await file.read(config_import.MAX_FILE_BYTES + 1)
    fields = _empty_settings()
    status = 200
    try:
        fields["result"] = await config_import.take_over(request, host, caller, content, dry_run=dry_run)
    except Refusal as error:
        status = error.status
        faults = error.faults if isinstance(error, Unprocessable) else []
        fields["import_fault"] = f"The file {faults[0].message}." if faults else error.text
    assert caller.org_id is not None
    async with host.database.tenant(caller.org_id) as session:
        return PAGES.page("settings.html", status, **await frame(host, caller, session), **fields)


def _empty_settings(*, saved: bool = False) -> dict[str, Any]:
    return {"here": "settings", "saved": saved, "fault": None, "import_fault": None, "result": None}


def _signed_in(host: PortalHost, person: Person, issued: SsoToken) -> Response:
    # After an invitation or a choice of an organization, go to the home page. Any other `next` is the page that the
    # person opened first.
    target = browser.HOME_PATH if person.next in {browser.INVITATION_PATH, browser.ORGANIZATIONS_PATH} else person.next
    response = RedirectResponse(target, 303)
    browser.keep_session(response, host, issued.token)
    return response
