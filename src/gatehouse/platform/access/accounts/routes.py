"""Endpoints of accounts (docs/accounts.md)."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from gatehouse.platform.access.accounts import service
from gatehouse.platform.access.accounts.schemas import (
    AddressConfirmation,
    ConfirmationMailed,
    PasswordChange,
    PasswordForgotten,
    PasswordReset,
    Registration,
    RegistrationAccepted,
    ResetRequested,
)
from gatehouse.platform.access.users.schemas import User
from gatehouse.platform.request.callers import RESPONSES, SessionUserStepUp
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/auth", tags=["Sessions"])


@router.post(
    "/register",
    status_code=201,
    response_model=User,
    responses={
        202: {
            "model": RegistrationAccepted,
            "description": "Without an invitation. The response is the same whether the address has an account or not.",
        },
        403: {
            "description": "`registration_closed`: there is no invitation, and the domain is not open or the"
            " organization uses single sign-on."
        },
        409: {"description": "With an invitation: the user name is taken."},
    },
)
async def register(body: Registration, request: Request, host: TheHost) -> object:
    """Sets the password of an invited user, or creates an account with the role `user` if the address's domain is
    verified and open (`self_registration`). Then sign in at `POST /api/auth/login`. If mail is configured, an account
    without an invitation must confirm its address first."""
    user = await service.register(request, host, body)
    if user is not None:
        return user
    accepted = RegistrationAccepted() if host.settings.mail is None else ConfirmationMailed()
    return JSONResponse(accepted.model_dump(), 202)


@router.post("/password/change", status_code=204, responses=RESPONSES)
async def change_password(caller: SessionUserStepUp, body: PasswordChange, request: Request, host: TheHost) -> None:
    """Changes your password. Your other sessions end; API keys stay valid."""
    await service.change_password(request, host, caller, body)


@router.post(
    "/password/reset",
    status_code=204,
    responses={400: {"description": "The token is not valid, was used already, or has expired."}},
)
async def reset_password(body: PasswordReset, request: Request, host: TheHost) -> None:
    """Sets a new password with a one-time token from an administrator (`POST
    /api/admin/users/{user_id}/password-reset`) or from a mail. All your sessions end."""
    await service.reset_password(request, host, body)


@router.post(
    "/password/forgot",
    status_code=202,
    response_model=ResetRequested,
    responses={409: {"description": "`mail_not_configured`"}},
)
async def request_password_reset(body: PasswordForgotten, request: Request, host: TheHost) -> ResetRequested:
    """Mails a link to set a new password, valid for an hour, to each account with this address and a password. At most
    three mails an hour are sent to an account."""
    await service.request_password_reset(request, host, body.email)
    return ResetRequested()


@router.post(
    "/email/confirm",
    status_code=204,
    responses={
        400: {"description": "The token is not valid, was used already, or has expired."},
        403: {"description": "The password is wrong."},
    },
)
async def confirm_address(body: AddressConfirmation, request: Request, host: TheHost) -> None:
    """Confirms the address of an account with the token from a mail and the account's password, so that nobody can
    confirm an account that another person registered."""
    await service.confirm_address(request, host, body)
