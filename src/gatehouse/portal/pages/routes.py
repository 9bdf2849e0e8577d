"""The pages. What a form on one of them asks for, the families' services do."""

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
from gatehouse.portal import browser
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
from gatehouse.portal.provider import Person
from gatehouse.portal.requests import Changing, Session
from gatehouse.portal.sso import service as sso
from gatehouse.portal.sso import table
from gatehouse.portal.sso.schemas import SsoToken

router = APIRouter(include_in_schema=False)
router.include_router(files.route(PAGES))

_NOTES: Final = {
    "out": "You are signed out here. On the platform you are still signed in: sign out there too if others use this"
    " browser.",
    "ended": "Your session has ended. Sign in again.",
}
#: What the dashboard shows of what is open; the API has the rest.
_NEWEST: Final = OffsetWindow(limit=20, offset=0)


@router.get("/")
async def home() -> Response:
    return RedirectResponse(browser.HOME, 303)


@router.get("/login")
async def login(host: TheHost, next: str = "", note: str = "") -> Response:
    target = next if next in browser.PAGES else browser.HOME
    return PAGES.page(
        "login.html",
        sign_in_url=f"/v1/auth/sso/login?{urlencode({'redirect_uri': target})}",
        other_url=f"/v1/auth/sso/login?{urlencode({'redirect_uri': target, 'prompt': 'select_account'})}",
        configured=host.provider.configured,
        note=_NOTES.get(note),
    )


@router.post("/logout")
async def logout(request: Request, host: TheHost) -> Response:
    """Be the session over already: then the browser forgets it."""
    browser.refuse_foreign(request, host)
    await sso.leave(request, host, browser.held(request, host, browser.SESSION))
    answer = RedirectResponse("/login?note=out", 303)
    browser.drop(answer, host, browser.SESSION, browser.ARRIVED)
    return answer


@router.get("/organizations")
async def choose(person: Newcomer, host: TheHost) -> Response:
    return PAGES.page("organizations.html", person=person, found=await table.memberships(host.database, person))


@router.post("/organizations")
async def chosen(person: Newcomer, request: Request, host: TheHost, org_id: Annotated[UUID, Form()]) -> Response:
    issued = await sso.open_session(request, host, person, TenantId(org_id))
    await sso.leave_former(request, host)
    return _signed_in(host, person, issued)


@router.get("/invitation")
async def invitation(person: Invited, host: TheHost) -> Response:
    return PAGES.page(
        "invitation.html", person=person, found=await table.memberships(host.database, person), fault=None
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
        found = await table.memberships(host.database, person)
        return PAGES.page("invitation.html", error.status, person=person, found=found, fault=error.text)


@router.get("/dashboard")
async def dashboard(caller: Visitor, host: TheHost, session: Session) -> Response:
    open_ones, total = await notifications.listed(session, _NEWEST, resolved=False)
    return PAGES.page(
        "dashboard.html",
        **await frame(host, caller, session),
        here="dashboard",
        outposts=await outposts.all_outposts(session),
        notifications=open_ones,
        total=total,
    )


@router.get("/settings")
async def settings(caller: Visitor, host: TheHost, session: Session, saved: bool = False) -> Response:
    return PAGES.page("settings.html", **await frame(host, caller, session), **_nothing_yet(saved=saved))


@router.post("/settings")
async def rename(
    caller: Visitor, host: TheHost, change: Changing, name: Annotated[str, Form(max_length=1000)]
) -> Response:
    if caller.role != "admin":
        raise AdminsOnly
    try:
        body = OrganizationSettings(name=name)
    except ValidationError as error:
        told = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        shown = _nothing_yet() | {"fault": f"Name: {told}"}
        return PAGES.page("settings.html", 400, **await frame(host, caller, change.session), **shown)
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
    content = await file.read(config_import.MOST_BYTES + 1)
    shown = _nothing_yet()
    status = 200
    try:
        shown["result"] = await config_import.take_over(request, host, caller, content, dry_run=dry_run)
    except Refusal as error:
        status = error.status
        faults = error.faults if isinstance(error, Unprocessable) else []
        shown["import_fault"] = f"The file {faults[0].message}." if faults else error.text
    assert caller.org_id is not None
    async with host.database.tenant(caller.org_id) as session:
        return PAGES.page("settings.html", status, **await frame(host, caller, session), **shown)


def _nothing_yet(*, saved: bool = False) -> dict[str, Any]:
    return {"here": "settings", "saved": saved, "fault": None, "import_fault": None, "result": None}


def _signed_in(host: PortalHost, person: Person, issued: SsoToken) -> Response:
    # What has led to an organization is done; what they came for otherwise, they get now.
    target = browser.HOME if person.next in {browser.INVITATION, browser.ORGANIZATIONS} else person.next
    answer = RedirectResponse(target, 303)
    browser.keep_session(answer, host, issued.token)
    return answer
