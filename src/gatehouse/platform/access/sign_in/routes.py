"""Pages for sign-in and sign-out."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from gatehouse.foundation.http.accepts import prefers_html
from gatehouse.platform.access import browser
from gatehouse.platform.access.browser import open_in_browser
from gatehouse.platform.access.pages import page
from gatehouse.platform.access.saml.table import active_idps
from gatehouse.platform.access.sessions import service as sessions
from gatehouse.platform.access.sessions.errors import AddressNotConfirmed, LoginFailed, TenantRequired
from gatehouse.platform.access.sessions.pending import SecondFactorRequired
from gatehouse.platform.access.sessions.schemas import Login
from gatehouse.platform.access.sign_in import mfa_cookie, paths, proof, table
from gatehouse.platform.access.sign_in.form_pages import redirect, render_form, sign_in_browser
from gatehouse.platform.access.sign_in.link_parameters import Link
from gatehouse.platform.access.sign_in.posted_forms import FormFieldError, Posted, parse_body
from gatehouse.platform.access.sign_in.sign_out import end_session
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(include_in_schema=False)

#: The response of `/` to clients that do not prefer HTML.
_SERVICE_LINKS: Final = {
    "service": "gatehouse", "model_api": "/v1", "sign_in": "/login", "console": paths.CONSOLE, "documentation": "/docs",
    "openapi": "/openapi.json", "status": "/api/health/ready",
}  # fmt: skip

_NOTES: Final = {
    "password": "Your new password is set. Sign in with it.",
    "address": "Your address is confirmed. Sign in.",
    "account": "Your account is ready. Sign in with your new password.",
    "out": "You are signed out.",
    "out-everywhere": "You are signed out here and at your organization's identity provider.",
    "out-here": "You are signed out here. Your organization's identity provider may still know you: on a device that"
    " others use, sign out there too.",
    "expired": "That took too long, or was wrong too often. Sign in again.",
}


#: Destinations for which the sign-in page is shown to signed-in users too, for another account or a fresh sign-in.
_SIGN_IN_AGAIN_PREFIXES: Final = ("/oauth/authorize", "/api/saml/")


@router.api_route("/", methods=["GET", "HEAD"])
async def front_page(request: Request) -> Response:
    """Redirects browsers to the console. Returns links to the services to other clients."""
    if not prefers_html(request.headers.get("accept", "")):
        return JSONResponse(_SERVICE_LINKS, headers={"Vary": "Accept"})
    response = redirect(paths.CONSOLE)
    response.headers["Vary"] = "Accept"
    return response


@router.get("/login")
async def login_page(request: Request, host: TheHost, link: Link) -> Response:
    if not link.done and not link.email and not link.next.startswith(_SIGN_IN_AGAIN_PREFIXES):
        browser_session = await browser.current_session(request, host)
        if browser_session is not None and link.next != paths.HOME:
            return redirect(link.next)
        if browser_session is not None:
            heading = "You are signed in"
            return await _render_signed_in(request, host, heading, browser_session[0].email, confirm_logout=False)
    note = _NOTES.get(link.done)
    return await _render_login(request, host, link.next, email=link.email, tenant=link.tenant, note=note)


@router.post("/login")
async def log_in(request: Request, host: TheHost, form: Posted) -> Response:
    email, tenant = form.stripped("email") or "", form.stripped("tenant")
    try:
        name_field = "email" if "@" in email else "username"
        body = parse_body(Login, **{name_field: email}, password=form.get("password"), tenant=tenant)
        secret = await sessions.login(request, host, body, open_in_browser)
    except SecondFactorRequired as error:
        return mfa_cookie.redirect_to_factor(error, form.next, host)
    except AddressNotConfirmed as error:
        return await _render_login(
            request, host, form.next, error.status, email=email, tenant=tenant or "", fault=error.text
        )
    except (LoginFailed, FormFieldError):
        fault = LoginFailed.message
    except TenantRequired as error:
        fault = "You have accounts in several organizations. Choose one, and enter your password again."
        return await _render_login(
            request, host, form.next, 400, email=email, tenant="", fault=fault, tenants=error.tenants
        )
    else:
        return sign_in_browser(redirect(form.next), secret, host)
    return await _render_login(request, host, form.next, 401, email=email, tenant=tenant or "", fault=fault)


@router.post("/login/single-sign-on")
async def single_sign_on(request: Request, host: TheHost, form: Posted) -> Response:
    """Shows the organization's identity providers. The page is the same for an unknown organization and for an
    organization without providers."""
    email, tenant = form.stripped("email") or "", form.stripped("tenant") or ""
    fault = None if email or tenant else "Enter your e-mail address first."
    return await _render_login(
        request, host, form.next, email=email, tenant=tenant, fault=fault, sso_requested=not fault
    )


async def _render_login(
    request: Request,
    host: Host,
    next_path: str,
    status: int = 200,
    *,
    email: str,
    tenant: str,
    fault: str | None = None,
    note: str | None = None,
    sso_requested: bool = False,
    tenants: Sequence[str] = (),
) -> Response:
    providers = await _providers(host, next_path, email=email, tenant=tenant)
    if sso_requested and not providers:
        note = "There is no single sign-on for this address. Sign in with your password."
    return await render_form(
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
        reset_url=paths.link_to("/login/reset", next_path),
        forgot_url=None if host.settings.mail is None else paths.link_to("/login/forgot", next_path, email=email),
    )


async def _providers(host: Host, next_path: str, *, email: str, tenant: str) -> list[dict[str, str]]:
    """Return the providers of the named organization, or of the organization that has verified the address's domain. No
    account is read, so the page does not reveal which accounts exist."""
    async with host.database.service() as lookup:
        tenant_id = await table.tenant_of(lookup, slug=tenant or None, email=email or None)
    if tenant_id is None:
        return []
    async with host.database.tenant(tenant_id) as session:
        idps = await active_idps(session)
    return [
        {
            "name": idp.name,
            "url": "/api/saml/login?" + urlencode({"idp_id": str(idp.id), "relay_state": next_path}),
        }
        for idp in idps
    ]


@router.get("/logout")
async def logout_page(request: Request, host: TheHost) -> Response:
    """Shows a confirmation, because another site can navigate a browser to this page."""
    browser_session = await browser.current_session(request, host)
    if browser_session is None:
        return redirect(paths.link_to("/login", done="out"))
    return await _render_signed_in(request, host, "Sign out?", browser_session[0].email, confirm_logout=True)


async def _render_signed_in(
    request: Request, host: Host, heading: str, email: str, *, confirm_logout: bool
) -> Response:
    portal_url = host.settings.portal_public_url
    return await render_form(
        request, host, "signed_in.html", heading=heading, email=email, leaving=confirm_logout, portal_url=portal_url
    )


@router.post("/logout")
async def log_out(request: Request, host: TheHost, form: Posted) -> Response:
    browser_session = await browser.current_session(request, host)
    signed_out = None
    if browser_session is not None:
        signed_out = await end_session(request, host, sessions.as_caller(*browser_session), single_logout=True)
    if signed_out is not None and signed_out.provider_logout_url is not None:
        # Requires a confirmation, because it ends the user's sessions at other services too.
        response: Response = page("signed_out.html", provider_url=signed_out.provider_logout_url)
    else:
        here_only = signed_out is not None and signed_out.by_identity_provider
        response = redirect(paths.link_to("/login", done="out-here" if here_only else "out"))
    browser.clear_cookie(response, host)
    proof.clear_cookie(response)
    return response
