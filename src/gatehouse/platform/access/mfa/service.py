"""Verifies, removes and resets second factors."""

from datetime import datetime
from typing import Final, TypeVar

import structlog
from fastapi import Request
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.secrets.sealing import CannotOpen
from gatehouse.platform.access.mfa import attempts, passkeys, recovery, table, totp
from gatehouse.platform.access.mfa.errors import NothingEnrolled, PasskeyNotFound, TotpNotFound, WrongCode
from gatehouse.platform.access.mfa.passkeys import RelyingParty
from gatehouse.platform.access.mfa.person import MfaSubject, complete_factor, lock_subject, require_fresh_factor
from gatehouse.platform.access.mfa.schemas import Passkey, Status, Totp, Verification
from gatehouse.platform.access.mfa.table import PasskeyRow
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.sessions.schemas import Tokens
from gatehouse.platform.access.sessions.service import LoginCompletion
from gatehouse.platform.access.users import rights
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host

log = structlog.get_logger(__name__)

T = TypeVar("T")

#: Names of RFC 8176: a one-time password, a key bound to hardware, a key that software syncs between devices.
_ONE_TIME_PASSWORD: Final = "otp"  # noqa: S105 - a name of RFC 8176
_HARDWARE_KEY, _SOFTWARE_KEY = "hwk", "swk"


async def verify(
    request: Request, host: Host, subject: MfaSubject, verification: Verification, complete: LoginCompletion[T]
) -> T | Tokens:
    """Verify a second factor and finish the login or step the session up. A wrong factor is counted.

    Raises `WrongCode`, `TooManyAttempts`, `InvalidMfaToken`, `PasskeysUnavailable`, `Unprocessable`."""
    required_field = "credential" if verification.method == "webauthn" else "code"
    if getattr(verification, required_field) is None:
        raise Unprocessable(faults=[FieldFault(required_field, f"is needed for {verification.method}")])
    relying_party = passkeys.relying_party(request, host) if verification.method == "webauthn" else None
    async with changing(request, host, subject.tenant_id, subject.caller) as change:
        locked = await lock_subject(change, subject)
        limit_error = await attempts.limit_error(change, locked.user)
        if limit_error is not None:
            host.metrics.mfa_verifications.add((verification.method, "limited"))
            raise limit_error
        factor = await _verified_factor(change, host, locked.user, verification, relying_party)
        if factor is not None:
            tokens_response = await complete_factor(change, host, request, locked, factor=factor, complete=complete)
            change.record("mfa.verified", "user", locked.user.id, method=verification.method)
            host.metrics.mfa_verifications.add((verification.method, "success"))
            return tokens_response
        await attempts.count_wrong_factor(change, locked.user)
        if locked.login is not None:
            await pending.count_wrong_factor(change.session, locked.login)
        change.record("mfa.failed", "user", locked.user.id, outcome="failure", method=verification.method)
        host.metrics.mfa_verifications.add((verification.method, "failure"))
    # Raised after the commit, so that the count of wrong factors is kept.
    raise WrongCode


async def _verified_factor(
    change: Change, host: Host, user: UserRow, verification: Verification, relying_party: RelyingParty | None
) -> str | None:
    """Return the factor's name in RFC 8176; None if the factor is wrong."""
    requirements = await pending.factor_requirements(change.session, user)
    if verification.method not in requirements.usable:
        return None
    if relying_party is not None:
        passkey = await passkeys.verify_assertion(change, user, relying_party, verification.credential or {})
        if passkey is None:
            return None
        return _SOFTWARE_KEY if passkey.synced else _HARDWARE_KEY
    code = verification.code or ""
    if verification.method == "recovery":
        valid = await table.use_recovery_code(change.session, user.id, recovery.digest(user.id, code))
    else:
        valid = await _verify_totp(change, host, user, code)
    return _ONE_TIME_PASSWORD if valid else None


async def _verify_totp(change: Change, host: Host, user: UserRow, code: str) -> bool:
    row = await table.totp(change.session, user.id)
    assert row is not None
    try:
        secret = host.sealer.open(row.sealed_secret, context=totp.sealing_context(row.tenant_id, row.id)).decode()
    except CannotOpen as error:
        # Only the operator can fix this, so it is logged. Recovery codes and an administrator's reset still work.
        log.warning("mfa.secret_does_not_open", user_id=str(user.id), reason=str(error))
        return False
    step = totp.step_of(secret, code, now=host.clock.now(), after=row.last_step)
    if step is None:
        return False
    row.last_step, row.last_used_at = step, utc_now()
    return True


async def remove_totp(change: Change, caller: Caller) -> None:
    """Remove the caller's authenticator app. Raises `TotpNotFound`, `MfaRequired`."""
    user = await _lock_own_user(change, caller)
    if await table.totp(change.session, user.id) is None:
        raise TotpNotFound
    await table.drop_totp(change.session, user.id, confirmed=True)
    await _record_removal(change, user, "totp")


async def remove_passkey(change: Change, caller: Caller, passkey: PasskeyRow) -> None:
    """Remove one of the caller's passkeys. Raises `PasskeyNotFound`, `MfaRequired`."""
    user = await _lock_own_user(change, caller)
    if passkey.user_id != user.id:
        raise PasskeyNotFound
    await change.session.delete(passkey)
    await change.session.flush()
    await _record_removal(change, user, "webauthn")


def rename_passkey(change: Change, caller: Caller, passkey: PasskeyRow, name: str) -> PasskeyRow:
    """Rename one of the caller's passkeys. Raises `PasskeyNotFound`."""
    if passkey.user_id != caller.user_id:
        raise PasskeyNotFound
    passkey.name = name
    return passkey


async def new_recovery_codes(change: Change, caller: Caller) -> list[str]:
    """Replace the caller's recovery codes. Raises `NothingEnrolled`, `MfaRequired`."""
    user = await _lock_own_user(change, caller)
    if not (await pending.factor_requirements(change.session, user)).enrolled:
        raise NothingEnrolled
    return await recovery.replace_codes(change, user)


async def reset(change: Change, caller: Caller, user: UserRow) -> None:
    """Remove all factors of a user. End the user's sessions too, because whoever has the lost device may use one of
    them. Raises `CannotGrant`, `OperatorsOnly`."""
    rights.require_may_change(caller, user)
    await table.drop_all_factors(change.session, user.id)
    await end_sessions(change, user.id, "mfa_reset")
    change.record("mfa.reset", "user", user.id)
    change.touch("user", user.id, urgent=True)


async def _record_removal(change: Change, user: UserRow, method: str) -> None:
    if not (await pending.factor_requirements(change.session, user)).enrolled:
        await table.drop_recovery_codes(change.session, user.id)
    change.record("mfa.removed", "user", user.id, method=method)
    change.touch("user", user.id, urgent=True)


async def _lock_own_user(change: Change, caller: Caller) -> UserRow:
    """Lock and return the caller's user. Raises `MfaRequired` if the caller needs a fresh second factor to change
    factors."""
    user = await change.session.get_one(UserRow, caller.user_id, with_for_update=True)
    require_fresh_factor(caller, await pending.factor_requirements(change.session, user))
    return user


async def status_of(session: AsyncSession, caller: Caller, verified_at: datetime | None) -> Status:
    """Return the response about a user's own second factors."""
    user = await session.get_one(UserRow, caller.user_id)
    requirements = await pending.factor_requirements(session, user)
    totp = await table.totp(session, user.id)
    return Status(
        enforcement_level=requirements.policy.level,
        allowed_methods=sorted(requirements.policy.methods),
        totp=None if totp is None else Totp.model_validate(totp),
        passkeys=[Passkey.model_validate(row) for row in await table.passkeys(session, user.id)],
        recovery_codes_left=await table.recovery_codes_left(session, user.id),
        enrollment_deadline=requirements.deadline,
        verified_at=verified_at,
        assertion_ttl_seconds=requirements.policy.ttl_seconds,
    )
