"""Endpoints of second factors (docs/mfa.md)."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request

from gatehouse.platform.access.mfa import enrolment, service
from gatehouse.platform.access.mfa.errors import PasskeyNotFound
from gatehouse.platform.access.mfa.person import MfaSubject, login_subject, session_subject
from gatehouse.platform.access.mfa.schemas import (
    Assertion,
    Confirmation,
    Enrolled,
    MaybeSigningIn,
    Passkey,
    PasskeyOptions,
    RecoveryCodes,
    Registration,
    Rename,
    Status,
    TotpSecret,
    Verification,
)
from gatehouse.platform.access.mfa.table import PasskeyRow
from gatehouse.platform.access.sessions.schemas import Tokens
from gatehouse.platform.access.sessions.service import complete_with_tokens
from gatehouse.platform.access.users.errors import UserNotFound
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.request.callers import (
    RESPONSES,
    AdminStepUp,
    SessionUser,
    SessionUserStepUp,
    session_user,
)
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["Second factor"])

_OWN_PATH: Final = "/api/auth/mfa"


async def _subject(request: Request, host: TheHost) -> MfaSubject:
    """Return the subject of the body's `mfa_token`; without a token, the subject of the session. This runs before the
    body is validated, so that 401 precedes 422."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        body = None
    token = body.get("mfa_token") if isinstance(body, dict) else None
    if isinstance(token, str):
        return await login_subject(host, token)
    return session_subject(await session_user(request))


Subject = Annotated[MfaSubject, Depends(_subject)]
LoadedPasskey = Annotated[PasskeyRow, Depends(loaded(PasskeyRow, "passkey_id", PasskeyNotFound))]
LoadedUser = Annotated[UserRow, Depends(loaded(UserRow, "user_id", UserNotFound))]

#: OpenAPI security: a session's token, or none if the body contains an `mfa_token`.
_OPTIONAL_BEARER: Final[dict[str, Any]] = {"security": [{"bearer": []}, {}]}
_VERIFY_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    401: {"description": "`invalid_code`, `invalid_mfa_token`, or a session that is not valid."},
    429: {"description": "`too_many_attempts`: ten wrong factors in a minute, or a hundred in a day."},
}
_ENROL_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    400: {"description": "`invalid_code`, `invalid_credential`: the method is not enrolled."},
    401: {"description": "Neither the session nor the `mfa_token` is valid."},
    403: {
        "description": "`mfa_required`: first verify a method that is enrolled. `method_not_allowed`: your organization"
        " does not allow this method."
    },
}


@router.post(f"{_OWN_PATH}/verify", response_model=Tokens, responses=_VERIFY_RESPONSES, openapi_extra=_OPTIONAL_BEARER)
async def verify_second_factor(subject: Subject, body: Verification, request: Request, host: TheHost) -> object:
    """Verifies a second factor: finishes a login (`mfa_token`), or steps up the current session. The new access token
    has `amr` and `mfa_at`. A session that is stepped up keeps its refresh token."""
    return await service.verify(request, host, subject, body, complete_with_tokens)


@router.post(
    f"{_OWN_PATH}/webauthn/assert/begin",
    response_model=PasskeyOptions,
    responses=_VERIFY_RESPONSES,
    openapi_extra=_OPTIONAL_BEARER,
)
async def begin_assertion(subject: Subject, body: MaybeSigningIn, request: Request, host: TheHost) -> object:
    """Returns the options for `navigator.credentials.get`. They are valid once and for five minutes."""
    return PasskeyOptions(public_key=await enrolment.begin_assertion(request, host, subject))


@router.post(
    f"{_OWN_PATH}/webauthn/assert/finish",
    response_model=Tokens,
    responses=_VERIFY_RESPONSES,
    openapi_extra=_OPTIONAL_BEARER,
)
async def finish_assertion(subject: Subject, body: Assertion, request: Request, host: TheHost) -> object:
    """Verifies a passkey, as `POST /api/auth/mfa/verify` does with the method `webauthn`."""
    verification = Verification(method="webauthn", credential=body.credential)
    return await service.verify(request, host, subject, verification, complete_with_tokens)


@router.get(_OWN_PATH, response_model=Status, responses=RESPONSES)
async def read_own_second_factors(caller: SessionUser, session: Session) -> object:
    """Returns your second factors, and the requirements of your organization."""
    verified_at = None if caller.mfa_at is None else datetime.fromtimestamp(caller.mfa_at, UTC)
    return await service.status_of(session, caller, verified_at)


@router.post(
    f"{_OWN_PATH}/totp",
    status_code=201,
    response_model=TotpSecret,
    responses=_ENROL_RESPONSES,
    openapi_extra=_OPTIONAL_BEARER,
)
async def begin_totp(subject: Subject, body: MaybeSigningIn, request: Request, host: TheHost) -> object:
    """Returns a secret for an authenticator app. Its first code must confirm it. An app that is enrolled already stays
    valid until then."""
    return await enrolment.begin_totp(request, host, subject)


@router.post(
    f"{_OWN_PATH}/totp/confirm", response_model=Enrolled, responses=_ENROL_RESPONSES, openapi_extra=_OPTIONAL_BEARER
)
async def confirm_totp(subject: Subject, body: Confirmation, request: Request, host: TheHost) -> object:
    """Enrols the app with its first code."""
    tokens, codes = await enrolment.confirm_totp(request, host, subject, body.code, complete_with_tokens)
    return Enrolled(recovery_codes=codes, tokens=tokens)


@router.delete(
    f"{_OWN_PATH}/totp",
    status_code=204,
    responses=RESPONSES | {404: {"description": "No authenticator app is enrolled."}},
)
async def remove_totp(caller: SessionUserStepUp, change: Changing) -> None:
    """Removes the authenticator app. Removing the last method removes the recovery codes too."""
    await service.remove_totp(change, caller)


@router.post(f"{_OWN_PATH}/recovery-codes", status_code=201, response_model=RecoveryCodes, responses=RESPONSES)
async def make_recovery_codes(caller: SessionUserStepUp, change: Changing) -> object:
    """Returns ten new recovery codes. The earlier codes become void."""
    return RecoveryCodes(recovery_codes=await service.new_recovery_codes(change, caller))


@router.post(
    f"{_OWN_PATH}/webauthn/register/begin",
    response_model=PasskeyOptions,
    responses=_ENROL_RESPONSES,
    openapi_extra=_OPTIONAL_BEARER,
)
async def begin_passkey(subject: Subject, body: MaybeSigningIn, request: Request, host: TheHost) -> object:
    """Returns the options for `navigator.credentials.create`. They are valid once and for five minutes."""
    return PasskeyOptions(public_key=await enrolment.begin_passkey(request, host, subject))


@router.post(
    f"{_OWN_PATH}/webauthn/register/finish",
    response_model=Enrolled,
    responses=_ENROL_RESPONSES,
    openapi_extra=_OPTIONAL_BEARER,
)
async def finish_passkey(subject: Subject, body: Registration, request: Request, host: TheHost) -> object:
    """Enrols the passkey that the credential belongs to."""
    tokens, codes = await enrolment.finish_passkey(
        request, host, subject, body.name, body.credential, complete=complete_with_tokens
    )
    return Enrolled(recovery_codes=codes, tokens=tokens)


@router.patch(f"{_OWN_PATH}/webauthn/{{passkey_id}}", response_model=Passkey, responses=RESPONSES)
async def rename_passkey(caller: SessionUser, passkey: LoadedPasskey, body: Rename, change: Changing) -> object:
    """Renames one of your passkeys."""
    return service.rename_passkey(change, caller, passkey, body.name)


@router.delete(f"{_OWN_PATH}/webauthn/{{passkey_id}}", status_code=204, responses=RESPONSES)
async def remove_passkey(caller: SessionUserStepUp, passkey: LoadedPasskey, change: Changing) -> None:
    """Removes one of your passkeys. Removing the last method removes the recovery codes too."""
    await service.remove_passkey(change, caller, passkey)


@router.delete("/api/admin/users/{user_id}/mfa", status_code=204, responses=RESPONSES)
async def reset_second_factors(caller: AdminStepUp, user: LoadedUser, change: Changing) -> None:
    """Removes all second factors of a user who has lost them, and ends the user's sessions."""
    await service.reset(change, caller, user)
