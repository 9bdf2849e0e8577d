"""The pages on which an administrator's one-time token is traded for a password: a reset, an invitation."""

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


@router.get("/login/reset")
async def reset_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _reset(request, host, link.next, token=link.token)


@router.post("/login/reset")
async def reset(request: Request, host: TheHost, form: Posted) -> Response:
    try:
        _check_repeated(form)
        await accounts.reset_password(
            request, host, body_of(PasswordReset, token=form.get("token").strip(), password=form.get("password"))
        )
    except (Refusal, Mistyped) as error:
        _raise_if_ours(error)
        return await _reset(request, host, form.next, 400, token=form.get("token"), fault=_fault(error))
    return go(paths.to("/login", form.next, done="password"))


async def _reset(
    request: Request, host: Host, next_path: str, status: int = 200, *, token: str, fault: str | None = None
) -> Response:
    return await show(
        request,
        host,
        "password.html",
        status,
        next_path=next_path,
        heading="Set a new password",
        lead="All your sessions end with the old one.",
        action="/login/reset",
        button="Set the password",
        invitation=False,
        email="",
        token=token,
        fault=fault,
        login_url=paths.to("/login", next_path),
    )


@router.get("/login/invitation")
async def invitation_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _invitation(request, host, link.next, token=link.token, email=link.email)


@router.post("/login/invitation")
async def accept_invitation(request: Request, host: TheHost, form: Posted) -> Response:
    email = form.word("email") or ""
    try:
        _check_repeated(form)
        given = body_of(
            Registration,
            email=email,
            password=form.get("password"),
            invitation_token=form.get("token").strip(),
        )
        await accounts.register(request, host, given)
    except (Refusal, Mistyped) as error:
        _raise_if_ours(error)
        token, fault = form.get("token"), _fault(error)
        return await _invitation(request, host, form.next, 400, token=token, email=email, fault=fault)
    return go(paths.to("/login", form.next, done="account", email=email))


async def _invitation(
    request: Request,
    host: Host,
    next_path: str,
    status: int = 200,
    *,
    token: str,
    email: str,
    fault: str | None = None,
) -> Response:
    return await show(
        request,
        host,
        "password.html",
        status,
        next_path=next_path,
        heading="Accept your invitation",
        lead="Choose a password for your account.",
        action="/login/invitation",
        button="Make my account",
        invitation=True,
        email=email,
        token=token,
        fault=fault,
        login_url=paths.to("/login", next_path),
    )


def _check_repeated(form: Form) -> None:
    if form.get("password") != form.get("repeated"):
        raise Mistyped("The two passwords are not the same.")


def _raise_if_ours(error: Refusal | Mistyped) -> None:
    """What is no fault of the person's is told as such, not beside the form."""
    if isinstance(error, Refusal) and error.status >= 429:
        raise error


def _fault(error: Refusal | Mistyped) -> str:
    return str(error) if isinstance(error, Mistyped) else told(error)
