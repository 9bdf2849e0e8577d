"""The second factors' endpoints (decisions 3)."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request

from gatehouse.platform.access.mfa import enrolment, service
from gatehouse.platform.access.mfa.errors import PasskeyNotFound
from gatehouse.platform.access.mfa.person import Who, in_session, signing_in
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
from gatehouse.platform.access.mfa.status import status_of
from gatehouse.platform.access.mfa.table import PasskeyRow
from gatehouse.platform.access.sessions.schemas import Tokens
from gatehouse.platform.access.sessions.service import enter_with_tokens
from gatehouse.platform.access.users.errors import UserNotFound
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.callers import RESPONSES, AdminStepUp, SessionUser, SessionUserStepUp, session_user
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, Session, loaded

router = APIRouter(tags=["Second factor"])

_OWN: Final = "/api/auth/mfa"


async def _who(request: Request, host: TheHost) -> Who:
    """By the body's `mfa_token`, else by the session's token. Looked for before the body is judged: 401 comes first."""
    try:
        sent = json.loads(await request.body())
    except (ValueError, RecursionError):
        sent = None
    token = sent.get("mfa_token") if isinstance(sent, dict) else None
    if isinstance(token, str):
        return await signing_in(host, token)
    return in_session(session_user(request))


Asker = Annotated[Who, Depends(_who)]
LoadedPasskey = Annotated[PasskeyRow, Depends(loaded(PasskeyRow, "passkey_id", PasskeyNotFound))]
LoadedUser = Annotated[UserRow, Depends(loaded(UserRow, "user_id", UserNotFound))]

#: In the API's document: the session's token, or nothing beside the body.
_EITHER: Final[dict[str, Any]] = {"security": [{"bearer": []}, {}]}
_SHOWN: Final[dict[int | str, dict[str, Any]]] = {
    401: {"description": "`invalid_code`, `invalid_mfa_token`, or a session that is not valid."},
    429: {"description": "`too_many_attempts`: ten wrong ones in a minute, or a hundred in a day."},
}
_ENROLLING: Final[dict[int | str, dict[str, Any]]] = {
    400: {"description": "`invalid_code`, `invalid_credential`: the method is not enrolled."},
    401: {"description": "Neither a session nor an `mfa_token` that is valid."},
    403: {"description": "`mfa_required`: show the method that you have first. `method_not_allowed`."},
}


@router.post(f"{_OWN}/verify", response_model=Tokens, responses=_SHOWN, openapi_extra=_EITHER)
async def verify_second_factor(who: Asker, body: Verification, request: Request, host: TheHost) -> object:
    """Shows a second factor: finishes a login (`mfa_token`), or steps up the session that asks. The new access token
    has `amr` and `mfa_at`; a session that is stepped up keeps its refresh token."""
    return await service.verify(request, host, who, body, enter_with_tokens)


@router.post(f"{_OWN}/webauthn/assert/begin", response_model=PasskeyOptions, responses=_SHOWN, openapi_extra=_EITHER)
async def begin_assertion(who: Asker, body: MaybeSigningIn, request: Request, host: TheHost) -> object:
    """What `navigator.credentials.get` is asked, good once and for five minutes."""
    return PasskeyOptions(public_key=await enrolment.begin_assertion(request, host, who))


@router.post(f"{_OWN}/webauthn/assert/finish", response_model=Tokens, responses=_SHOWN, openapi_extra=_EITHER)
async def finish_assertion(who: Asker, body: Assertion, request: Request, host: TheHost) -> object:
    """The same as `POST /api/auth/mfa/verify` with the method `webauthn`."""
    given = Verification(method="webauthn", credential=body.credential)
    return await service.verify(request, host, who, given, enter_with_tokens)


@router.get(_OWN, response_model=Status, responses=RESPONSES)
async def read_own_second_factors(caller: SessionUser, session: Session) -> object:
    """Your methods, and what your organization asks of you."""
    verified = None if caller.mfa_at is None else datetime.fromtimestamp(caller.mfa_at, UTC)
    return await status_of(session, caller, verified)


@router.post(f"{_OWN}/totp", status_code=201, response_model=TotpSecret, responses=_ENROLLING, openapi_extra=_EITHER)
async def begin_totp(who: Asker, body: MaybeSigningIn, request: Request, host: TheHost) -> object:
    """A secret for an authenticator app. It counts once a code has confirmed it; an app you have goes on until then."""
    return await enrolment.begin_totp(request, host, who)


@router.post(f"{_OWN}/totp/confirm", response_model=Enrolled, responses=_ENROLLING, openapi_extra=_EITHER)
async def confirm_totp(who: Asker, body: Confirmation, request: Request, host: TheHost) -> object:
    """Enrols the app by its first code."""
    tokens, codes = await enrolment.confirm_totp(request, host, who, body.code, enter_with_tokens)
    return Enrolled(recovery_codes=codes, tokens=tokens)


@router.delete(
    f"{_OWN}/totp", status_code=204, responses=RESPONSES | {404: {"description": "No authenticator app is enrolled."}}
)
async def remove_totp(caller: SessionUserStepUp, change: Changing) -> None:
    """Removes the authenticator app. With the last method go the recovery codes."""
    await service.remove_totp(change, caller)


@router.post(f"{_OWN}/recovery-codes", status_code=201, response_model=RecoveryCodes, responses=RESPONSES)
async def make_recovery_codes(caller: SessionUserStepUp, change: Changing) -> object:
    """Ten new recovery codes; the earlier ones are void."""
    return RecoveryCodes(recovery_codes=await service.new_recovery_codes(change, caller))


@router.post(
    f"{_OWN}/webauthn/register/begin", response_model=PasskeyOptions, responses=_ENROLLING, openapi_extra=_EITHER
)
async def begin_passkey(who: Asker, body: MaybeSigningIn, request: Request, host: TheHost) -> object:
    """What `navigator.credentials.create` is asked, good once and for five minutes."""
    return PasskeyOptions(public_key=await enrolment.begin_passkey(request, host, who))


@router.post(f"{_OWN}/webauthn/register/finish", response_model=Enrolled, responses=_ENROLLING, openapi_extra=_EITHER)
async def finish_passkey(who: Asker, body: Registration, request: Request, host: TheHost) -> object:
    """Enrols the passkey that answered."""
    tokens, codes = await enrolment.finish_passkey(
        request, host, who, body.name, body.credential, enter=enter_with_tokens
    )
    return Enrolled(recovery_codes=codes, tokens=tokens)


@router.patch(f"{_OWN}/webauthn/{{passkey_id}}", response_model=Passkey, responses=RESPONSES)
async def rename_passkey(caller: SessionUser, passkey: LoadedPasskey, body: Rename, change: Changing) -> object:
    """Another name for one of your passkeys."""
    return service.rename_passkey(change, caller, passkey, body.name)


@router.delete(f"{_OWN}/webauthn/{{passkey_id}}", status_code=204, responses=RESPONSES)
async def remove_passkey(caller: SessionUserStepUp, passkey: LoadedPasskey, change: Changing) -> None:
    """Removes one of your passkeys. With the last method go the recovery codes."""
    await service.remove_passkey(change, caller, passkey)


@router.delete("/api/admin/users/{user_id}/mfa", status_code=204, responses=RESPONSES)
async def reset_second_factors(caller: AdminStepUp, user: LoadedUser, change: Changing) -> None:
    """Removes all second factors of a user who has lost them, and ends the user's sessions."""
    await service.reset(change, caller, user)
