"""Pages that set a password with a one-time token from an administrator or a mail: password reset and invitation."""

from collections.abc import Awaitable, Callable

import msgspec
from fastapi import APIRouter, Request, Response

from gatehouse.foundation.errors import Refusal
from gatehouse.platform.access.accounts import service as accounts
from gatehouse.platform.access.accounts.schemas import PasswordReset, Registration
from gatehouse.platform.access.browser import open_in_browser
from gatehouse.platform.access.sessions import service as sessions
from gatehouse.platform.access.sessions.schemas import Login
from gatehouse.platform.access.sign_in import paths
from gatehouse.platform.access.sign_in.form_pages import redirect, render_form, sign_in_browser
from gatehouse.platform.access.sign_in.link_parameters import Link
from gatehouse.platform.access.sign_in.posted_forms import Form, FormFieldError, Posted, error_text, parse_body
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(include_in_schema=False)


async def _reset(request: Request, host: Host, form: Form) -> None:
    body = parse_body(PasswordReset, token=form.get("token").strip(), password=form.get("password"))
    await accounts.reset_password(request, host, body)


async def _register(request: Request, host: Host, form: Form) -> None:
    body = parse_body(
        Registration,
        email=form.stripped("email") or "",
        password=form.get("password"),
        display_name=form.stripped("display_name"),
        invitation_token=form.get("token").strip(),
    )
    await accounts.register(request, host, body)


class _NewPasswordPage(msgspec.Struct, frozen=True):
    """Texts and action of one page. `redeem` raises `Refusal` or `FormFieldError`. `done` selects the note on the
    sign-in page that follows."""

    redeem: Callable[[Request, Host, Form], Awaitable[None]]
    action: str
    heading: str
    lead: str
    button: str
    done: str
    invitation: bool


_RESET = _NewPasswordPage(
    _reset,
    action="/login/reset",
    heading="Set a new password",
    lead="All your sessions end when you set it.",
    button="Set the password",
    done="password",
    invitation=False,
)
_INVITATION = _NewPasswordPage(
    _register,
    action="/login/invitation",
    heading="Accept your invitation",
    lead="Choose a password for your account.",
    button="Make my account",
    done="account",
    invitation=True,
)


@router.get(_RESET.action)
async def reset_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _render(request, host, _RESET, link.next, token=link.token, email=link.email)


@router.post(_RESET.action)
async def reset(request: Request, host: TheHost, form: Posted) -> Response:
    return await _redeem(request, host, _RESET, form)


@router.get(_INVITATION.action)
async def invitation_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _render(request, host, _INVITATION, link.next, token=link.token, email=link.email)


@router.post(_INVITATION.action)
async def accept_invitation(request: Request, host: TheHost, form: Posted) -> Response:
    return await _redeem(request, host, _INVITATION, form)


async def _redeem(request: Request, host: Host, page: _NewPasswordPage, form: Form) -> Response:
    email = form.stripped("email") or ""
    try:
        _check_repeated(form)
        await page.redeem(request, host, form)
    except FormFieldError as error:
        fault = str(error)
    except Refusal as error:
        # Only an error that the user can correct is shown in the form. A 429 and server errors have their own page.
        if error.status >= 429:
            raise
        fault = error_text(error)
    else:
        return await _sign_in(request, host, page, form, email)
    return await _render(
        request, host, page, form.next, 400, token=form.get("token"), email=email,
        display_name=form.get("display_name"), fault=fault,
    )  # fmt: skip


async def _sign_in(request: Request, host: Host, page: _NewPasswordPage, form: Form, email: str) -> Response:
    """Sign an invited user in, unless the user has a second factor or several accounts. Redirect all other users to the
    sign-in page."""
    if page.invitation:
        try:
            body = parse_body(Login, email=email, password=form.get("password"), tenant=None)
            secret = await sessions.login(request, host, body, open_in_browser)
        except Refusal:
            pass
        else:
            next_path = paths.CONSOLE if form.next == paths.HOME else form.next
            return sign_in_browser(redirect(next_path), secret, host)
    return redirect(paths.link_to("/login", form.next, done=page.done, email=email))


def _check_repeated(form: Form) -> None:
    if form.get("password") != form.get("repeated"):
        raise FormFieldError("The two passwords are not the same.")


async def _render(
    request: Request,
    host: Host,
    page: _NewPasswordPage,
    next_path: str,
    status: int = 200,
    *,
    token: str,
    email: str = "",
    display_name: str = "",
    fault: str | None = None,
) -> Response:
    return await render_form(
        request,
        host,
        "password.html",
        status,
        next_path=next_path,
        heading=page.heading,
        lead=page.lead,
        action=page.action,
        button=page.button,
        invitation=page.invitation,
        email=email,
        display_name=display_name,
        token=token,
        fault=fault,
        login_url=paths.link_to("/login", next_path),
    )
