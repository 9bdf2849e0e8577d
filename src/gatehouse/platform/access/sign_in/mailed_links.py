"""Pages for mailed links: one requests a link to set a new password, and one confirms an address."""

from fastapi import APIRouter, Request, Response

from gatehouse.foundation.errors import NotFound, Refusal
from gatehouse.platform.access.accounts import service as accounts
from gatehouse.platform.access.accounts.schemas import AddressConfirmation, PasswordForgotten, ResetRequested
from gatehouse.platform.access.browser import open_in_browser
from gatehouse.platform.access.sessions import service as sessions
from gatehouse.platform.access.sessions.schemas import Login
from gatehouse.platform.access.sign_in import paths
from gatehouse.platform.access.sign_in.form_pages import redirect, render_form, sign_in_browser
from gatehouse.platform.access.sign_in.link_parameters import Link
from gatehouse.platform.access.sign_in.posted_forms import Form, FormFieldError, Posted, error_text, parse_body
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(include_in_schema=False)


@router.get("/login/forgot")
async def forgot_page(request: Request, host: TheHost, link: Link) -> Response:
    if host.settings.mail is None:
        raise NotFound
    return await _render_forgot(request, host, link.next, email=link.email)


@router.post("/login/forgot")
async def forgot(request: Request, host: TheHost, form: Posted) -> Response:
    """Requests the mail, and shows the same page for every address."""
    email = form.stripped("email") or ""
    try:
        body = parse_body(PasswordForgotten, email=email)
        await accounts.request_password_reset(request, host, body.email)
    except FormFieldError as error:
        return await _render_forgot(request, host, form.next, 400, email=email, fault=str(error))
    return await _render_forgot(request, host, form.next, email=email, note=ResetRequested().message)


@router.get("/login/confirm-address")
async def confirmation_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _render_confirmation(request, host, email=link.email, token=link.token)


@router.post("/login/confirm-address")
async def confirm_address(request: Request, host: TheHost, form: Posted) -> Response:
    email, token, password = form.stripped("email") or "", form.get("token").strip(), form.get("password")
    try:
        user = await accounts.confirm_address(
            request, host, parse_body(AddressConfirmation, token=token, password=password)
        )
    except FormFieldError as error:
        fault = str(error)
    except Refusal as error:
        # Only an error that the user can correct is shown in the form. A 429 and server errors have their own page.
        if error.status >= 429:
            raise
        fault = error_text(error)
    else:
        return await _sign_in(request, host, user.email, form)
    return await _render_confirmation(request, host, 400, email=email, token=token, fault=fault)


async def _sign_in(request: Request, host: Host, email: str, form: Form) -> Response:
    """Sign the user in. A user who has a second factor or several accounts is redirected to the sign-in page."""
    try:
        body = parse_body(Login, email=email, password=form.get("password"), tenant=None)
        secret = await sessions.login(request, host, body, open_in_browser)
    except Refusal:
        return redirect(paths.link_to("/login", done="address", email=email))
    return sign_in_browser(redirect(paths.CONSOLE), secret, host)


async def _render_forgot(
    request: Request,
    host: Host,
    next_path: str,
    status: int = 200,
    *,
    email: str,
    fault: str | None = None,
    note: str | None = None,
) -> Response:
    return await render_form(
        request,
        host,
        "forgot.html",
        status,
        next_path=next_path,
        email=email,
        fault=fault,
        note=note,
        login_url=paths.link_to("/login", next_path),
    )


async def _render_confirmation(
    request: Request, host: Host, status: int = 200, *, email: str, token: str, fault: str | None = None
) -> Response:
    return await render_form(request, host, "confirm_address.html", status, email=email, token=token, fault=fault)
