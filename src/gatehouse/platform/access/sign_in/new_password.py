"""The pages on which an administrator's one-time token is traded for a password: a reset, an invitation."""

from collections.abc import Awaitable, Callable

import msgspec
from fastapi import APIRouter, Request, Response

from gatehouse.foundation.errors import Refusal
from gatehouse.platform.access.accounts import service as accounts
from gatehouse.platform.access.accounts.schemas import PasswordReset, Registration
from gatehouse.platform.access.sign_in import paths
from gatehouse.platform.access.sign_in.arriving import Link
from gatehouse.platform.access.sign_in.posted import Form, Mistyped, Posted, body_of, told
from gatehouse.platform.access.sign_in.showing import go, show
from gatehouse.platform.ports import Host, TheHost

router = APIRouter(include_in_schema=False)


async def _reset(request: Request, host: Host, form: Form) -> None:
    given = body_of(PasswordReset, token=form.get("token").strip(), password=form.get("password"))
    await accounts.reset_password(request, host, given)


async def _register(request: Request, host: Host, form: Form) -> None:
    given = body_of(
        Registration,
        email=form.word("email") or "",
        password=form.get("password"),
        invitation_token=form.get("token").strip(),
    )
    await accounts.register(request, host, given)


class _Page(msgspec.Struct, frozen=True):
    """`trade` raises `Refusal` or `Mistyped`; `done` is the note on the sign-in page that follows."""

    trade: Callable[[Request, Host, Form], Awaitable[None]]
    action: str
    heading: str
    lead: str
    button: str
    done: str
    invitation: bool


_RESET = _Page(
    _reset,
    action="/login/reset",
    heading="Set a new password",
    lead="All your sessions end with the old one.",
    button="Set the password",
    done="password",
    invitation=False,
)
_INVITATION = _Page(
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
    return await _show(request, host, _RESET, link.next, token=link.token)


@router.post(_RESET.action)
async def reset(request: Request, host: TheHost, form: Posted) -> Response:
    return await _traded(request, host, _RESET, form)


@router.get(_INVITATION.action)
async def invitation_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _show(request, host, _INVITATION, link.next, token=link.token, email=link.email)


@router.post(_INVITATION.action)
async def accept_invitation(request: Request, host: TheHost, form: Posted) -> Response:
    return await _traded(request, host, _INVITATION, form)


async def _traded(request: Request, host: Host, shown: _Page, form: Form) -> Response:
    email = form.word("email") or ""
    try:
        _check_repeated(form)
        await shown.trade(request, host, form)
    except Mistyped as error:
        fault = str(error)
    except Refusal as error:
        # What is no fault of the person's is told as such, not beside the form.
        if error.status >= 429:
            raise
        fault = told(error)
    else:
        return go(paths.to("/login", form.next, done=shown.done, email=email))
    return await _show(request, host, shown, form.next, 400, token=form.get("token"), email=email, fault=fault)


def _check_repeated(form: Form) -> None:
    if form.get("password") != form.get("repeated"):
        raise Mistyped("The two passwords are not the same.")


async def _show(
    request: Request,
    host: Host,
    shown: _Page,
    next_path: str,
    status: int = 200,
    *,
    token: str,
    email: str = "",
    fault: str | None = None,
) -> Response:
    return await show(
        request,
        host,
        "password.html",
        status,
        next_path=next_path,
        heading=shown.heading,
        lead=shown.lead,
        action=shown.action,
        button=shown.button,
        invitation=shown.invitation,
        email=email,
        token=token,
        fault=fault,
        login_url=paths.to("/login", next_path),
    )
