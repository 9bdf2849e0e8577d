"""Enrols second factors, in a session or during a sign-in that requires one."""

from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from fastapi import Request
from sqlalchemy import select

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.access.mfa import passkeys, recovery, table, totp
from gatehouse.platform.access.mfa.errors import (
    AlreadyEnrolled,
    BadCredential,
    EnrolmentOnly,
    MfaMethodNotAllowed,
    NotConfirmed,
    TooManyPasskeys,
)
from gatehouse.platform.access.mfa.person import (
    LockedSubject,
    MfaSubject,
    complete_factor,
    lock_subject,
    require_fresh_factor,
)
from gatehouse.platform.access.mfa.schemas import TotpSecret
from gatehouse.platform.access.mfa.table import PasskeyRow, TotpRow
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.sessions.schemas import Tokens
from gatehouse.platform.access.sessions.service import LoginCompletion
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host

T = TypeVar("T")

_MAX_PASSKEYS = 20


async def begin_totp(request: Request, host: Host, subject: MfaSubject) -> TotpSecret:
    """Store and return a secret that waits for its first code. An enrolled app stays valid until that code arrives.
    Raises the errors of `_may_enrol`."""
    async with changing(request, host, subject.tenant_id, subject.caller) as change:
        locked = await _may_enrol(change, subject, "totp")
        await table.drop_totp(change.session, locked.user.id, confirmed=False)
        secret, row_id = totp.new_secret(), new_id()
        change.session.add(
            TotpRow(
                id=row_id,
                tenant_id=locked.user.tenant_id,
                user_id=locked.user.id,
                sealed_secret=host.sealer.seal(
                    secret.encode(), context=totp.sealing_context(locked.user.tenant_id, row_id)
                ),
                last_step=0,
                created_at=utc_now(),
                confirmed_at=None,
                last_used_at=None,
            )
        )
        url = totp.url(secret, locked.user.email)
        return TotpSecret(secret=secret, otpauth_url=url, qr_code=totp.qr_code(url))


async def confirm_totp(
    request: Request, host: Host, subject: MfaSubject, code: str, complete: LoginCompletion[T]
) -> tuple[T | Tokens, list[str] | None]:
    """Enrol the app. Return the result of the login or the session's new tokens, and new recovery codes if the user had
    none. Raises `NotConfirmed`."""
    async with changing(request, host, subject.tenant_id, subject.caller) as change:
        locked = await _may_enrol(change, subject, "totp")
        row = await table.totp(change.session, locked.user.id, confirmed=False)
        if row is None:
            raise NotConfirmed
        secret = host.sealer.open(row.sealed_secret, context=totp.sealing_context(row.tenant_id, row.id)).decode()
        step = totp.step_of(secret, code, now=host.clock.now(), after=row.last_step)
        if step is None:
            raise NotConfirmed
        await table.drop_totp(change.session, locked.user.id, confirmed=True)
        row.last_step, row.confirmed_at, row.last_used_at = step, utc_now(), utc_now()
        return await _finish_enrolment(change, host, request, locked, method="totp", factor="otp", complete=complete)


async def begin_passkey(request: Request, host: Host, subject: MfaSubject) -> dict[str, Any]:
    """Return the registration options for the browser. Raises `PasskeysUnavailable`, `TooManyPasskeys`."""
    relying_party = passkeys.relying_party(request, host)
    async with changing(request, host, subject.tenant_id, subject.caller) as change:
        locked = await _may_enrol(change, subject, "webauthn")
        await _require_room(change, locked.user.id)
        return await passkeys.registration_options(change, locked.user, relying_party)


async def finish_passkey(
    request: Request,
    host: Host,
    subject: MfaSubject,
    name: str,
    credential: dict[str, Any],
    *,
    complete: LoginCompletion[T],
) -> tuple[T | Tokens, list[str] | None]:
    """Enrol the passkey. Return the same pair as `confirm_totp`. Raises `BadCredential`, `AlreadyEnrolled`,
    `PasskeysUnavailable`, `TooManyPasskeys`."""
    relying_party = passkeys.relying_party(request, host)
    async with changing(request, host, subject.tenant_id, subject.caller) as change:
        locked = await _may_enrol(change, subject, "webauthn")
        verified = await passkeys.verify_registration(change, locked.user, relying_party, credential)
        if verified is not None:
            if await _credential_owner(change, verified.credential_id):
                raise AlreadyEnrolled
            # Checked again: any number of registrations may have been started.
            await _require_room(change, locked.user.id)
            change.session.add(
                PasskeyRow(
                    id=new_id(),
                    tenant_id=locked.user.tenant_id,
                    user_id=locked.user.id,
                    credential_id=verified.credential_id,
                    public_key=verified.credential_public_key,
                    sign_count=verified.sign_count,
                    name=name,
                    transports=passkeys.transports_of(credential),
                    synced=passkeys.is_synced(verified),
                    created_at=utc_now(),
                    last_used_at=None,
                )
            )
            factor = "swk" if passkeys.is_synced(verified) else "hwk"
            return await _finish_enrolment(
                change, host, request, locked, method="webauthn", factor=factor, complete=complete
            )
    # Raised only after the commit, which uses up the challenge.
    raise BadCredential


async def _require_room(change: Change, user_id: UUID) -> None:
    """Require room for one more passkey. Raises `TooManyPasskeys`."""
    count = partial(table.count_passkeys, user_id=user_id)
    limit = _MAX_PASSKEYS
    await require_room(change.session, ScopedLock.PASSKEYS, count, limit=limit, full=TooManyPasskeys, scope=user_id)


async def begin_assertion(request: Request, host: Host, subject: MfaSubject) -> dict[str, Any]:
    """Return the options for the browser to use one of the user's passkeys. Raises `PasskeysUnavailable`."""
    relying_party = passkeys.relying_party(request, host)
    async with changing(request, host, subject.tenant_id, subject.caller) as change:
        locked = await lock_subject(change, subject)
        return await passkeys.assertion_options(change, locked.user, relying_party)


async def _may_enrol(change: Change, subject: MfaSubject, method: str) -> LockedSubject:
    """Lock the subject and check that it may enrol the method. Raises `MfaMethodNotAllowed`, `EnrolmentOnly`,
    `MfaRequired`."""
    locked = await lock_subject(change, subject)
    requirements = await pending.factor_requirements(change.session, locked.user)
    if method not in requirements.policy.methods:
        raise MfaMethodNotAllowed
    if locked.login is not None:
        # A caller with only the password must not add another factor to bypass the enrolled one.
        if requirements.usable or not locked.login.enrolling:
            raise EnrolmentOnly
    else:
        assert subject.caller is not None
        require_fresh_factor(subject.caller, requirements)
    return locked


async def _finish_enrolment(
    change: Change,
    host: Host,
    request: Request,
    locked: LockedSubject,
    *,
    method: str,
    factor: str,
    complete: LoginCompletion[T],
) -> tuple[T | Tokens, list[str] | None]:
    await change.session.flush()
    tokens_response = await complete_factor(change, host, request, locked, factor=factor, complete=complete)
    change.record("mfa.enrolled", "user", locked.user.id, method=method)
    change.touch("user", locked.user.id, urgent=True)
    codes_left = await table.recovery_codes_left(change.session, locked.user.id)
    return tokens_response, None if codes_left else await recovery.replace_codes(change, locked.user)


async def _credential_owner(change: Change, credential_id: bytes) -> UUID | None:
    return await change.session.scalar(select(PasskeyRow.id).where(PasskeyRow.credential_id == credential_id))
