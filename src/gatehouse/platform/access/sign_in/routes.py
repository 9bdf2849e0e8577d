"""The pages of signing in with a password, and of signing out."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from gatehouse.foundation.http.accepts import prefers_html
from gatehouse.platform.access import browser
from gatehouse.platform.access.browser import open_in_browser
from gatehouse.platform.access.pages import page
from gatehouse.platform.access.saml import logout as saml
from gatehouse.platform.access.saml.errors import PublicUrlMissing
from gatehouse.platform.access.saml.table import active_idps
from gatehouse.platform.access.sessions import service as sessions
from gatehouse.platform.access.sessions.errors import LoginFailed, TenantNeeded
from gatehouse.platform.access.sessions.pending import SecondFactorNeeded
from gatehouse.platform.access.sessions.schemas import Login
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.access.sign_in import half_way, paths, proof, table
from gatehouse.platform.access.sign_in.arriving import Link
from gatehouse.platform.access.sign_in.posted import Mistyped, Posted, body_of
from gatehouse.platform.access.sign_in.showing import entered, go, show
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.ports import Host, TheHost
from gatehouse.platform.requests import changing

router = APIRouter(include_in_schema=False)

#: What `/` tells a program.
_PLACES: Final = {
    "service": "gatehouse", "model_api": "/v1", "sign_in": "/login", "documentation": "/docs",
    "openapi": "/openapi.json", "status": "/api/health/ready",
}  # fmt: skip

_NOTES: Final = {
    "password": "Your new password is set. Sign in with it.",
    "account": "Your account is ready. Sign in with your new password.",
    "out": "You are signed out.",
    "expired": "That took too long, or was wrong too often. Sign in again.",
}


#: Paths that send somebody who is signed in to the sign-in page: another account is wanted, or a fresh sign-in.
_ASKS_AGAIN: Final = ("/oauth/authorize", "/api/saml/")


@router.get("/")
async def front_page(request: Request, host: TheHost) -> Response:
    """For a person who opens the platform's address; a program learns where things are."""
    if not prefers_html(request.headers.get("accept", "")):
        return JSONResponse(_PLACES, headers={"Vary": "Accept"})
    found = await browser.current(request, host)
    response = page("front.html", email=None if found is None else found[0].email)
    response.headers["Vary"] = "Accept"
    return response


@router.get("/login")
async def login_page(request: Request, host: TheHost, link: Link) -> Response:
    if not link.done and not link.email and not link.next.startswith(_ASKS_AGAIN):
        found = await browser.current(request, host)
        if found is not None and link.next != paths.HOME:
            return go(link.next)
        if found is not None:
            heading = "You are signed in"
            return await _signed_in(request, host, heading, found[0].email, leaving=False)
    note = _NOTES.get(link.done)
    return await _login(request, host, link.next, email=link.email, tenant=link.tenant, note=note)


@router.post("/login")
async def log_in(request: Request, host: TheHost, form: Posted) -> Response:
    email, tenant = form.word("email") or "", form.word("tenant")
    try:
        by = "email" if "@" in email else "username"
        given = body_of(Login, **{by: email}, password=form.get("password"), tenant=tenant)
        secret = await sessions.login(request, host, given, open_in_browser)
    except SecondFactorNeeded as needed:
        return half_way.send_on(needed, form.next, host)
    except (LoginFailed, Mistyped):
        fault = LoginFailed.message
    except TenantNeeded as error:
        fault = "You have accounts in several organizations. Choose one, and enter your password again."
        return await _login(request, host, form.next, 400, email=email, tenant="", fault=fault, tenants=error.tenants)
    else:
        return entered(go(form.next), secret, host)
    return await _login(request, host, form.next, 401, email=email, tenant=tenant or "", fault=fault)


@router.post("/login/single-sign-on")
async def single_sign_on(request: Request, host: TheHost, form: Posted) -> Response:
    """The same answer for an organization without identity providers and for none."""
    email, tenant = form.word("email") or "", form.word("tenant") or ""
    fault = None if email or tenant else "Enter your e-mail address first."
    return await _login(request, host, form.next, email=email, tenant=tenant, fault=fault, looking=not fault)


async def _login(
    request: Request,
    host: Host,
    next_path: str,
    status: int = 200,
    *,
    email: str,
    tenant: str,
    fault: str | None = None,
    note: str | None = None,
    looking: bool = False,
    tenants: Sequence[str] = (),
) -> Response:
    providers = await _providers(host, next_path, email=email, tenant=tenant)
    if looking and not providers:
        note = "There is no single sign-on for this address. Sign in with your password."
    return await show(
        request,
        host,
        "login.html",
        status,
        next_path=next_path,
        email=email,
        tenant=tenant,
        tenants=tenants,
        fault=fault,
        note=note,
        providers=providers,
        reset_url=paths.to("/login/reset", next_path),
    )


async def _providers(host: Host, next_path: str, *, email: str, tenant: str) -> list[dict[str, str]]:
    """Of the organization that is named, or that has proven the address's domain: of no account, so they tell nothing
    of who exists."""
    async with host.database.service() as lookup:
        tenant_id = await table.tenant_of(lookup, slug=tenant or None, email=email or None)
    if tenant_id is None:
        return []
    async with host.database.tenant(tenant_id) as session:
        found = await active_idps(session)
    return [
        {
            "name": idp.name,
            "url": "/api/saml/login?" + urlencode({"idp_id": str(idp.id), "relay_state": next_path}),
        }
        for idp in found
    ]


@router.get("/logout")
async def logout_page(request: Request, host: TheHost) -> Response:
    """Asks first: another site can lead a browser here."""
    found = await browser.current(request, host)
    if found is None:
        return go(paths.to("/login", done="out"))
    return await _signed_in(request, host, "Sign out?", found[0].email, leaving=True)


async def _signed_in(request: Request, host: Host, heading: str, email: str, *, leaving: bool) -> Response:
    portal_url = host.settings.portal_public_url
    return await show(
        request, host, "signed_in.html", heading=heading, email=email, leaving=leaving, portal_url=portal_url
    )


@router.post("/logout")
async def log_out(request: Request, host: TheHost, form: Posted) -> Response:
    found = await browser.current(request, host)
    provider_url = None if found is None else await _leave(request, host, *found)
    if provider_url is None:
        response: Response = go(paths.to("/login", done="out"))
    else:
        # Not without asking: there it ends the person's sessions at other services.
        response = page("signed_out.html", provider_url=provider_url)
    browser.clear_cookie(response, host)
    proof.forget(response)
    return response


async def _leave(request: Request, host: Host, user: UserRow, session: SessionRow) -> str | None:
    """Ends the session. The answer is where to sign out at the identity provider that it came from."""
    caller = sessions.as_caller(user, session)
    async with changing(request, host, user.tenant_id, caller) as change:
        await sessions.log_out(change, caller)
    try:
        return await saml.leave(request, host, user.tenant_id, session.id)
    except PublicUrlMissing:
        return None
