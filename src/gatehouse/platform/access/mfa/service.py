"""The rules of showing a second factor, and of taking one away."""

from typing import Final, TypeVar

import structlog
from fastapi import Request

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.sealing import CannotOpen
from gatehouse.platform.access.mfa import attempts, passkeys, recovery, table, totp
from gatehouse.platform.access.mfa.errors import NothingEnrolled, PasskeyNotFound, TotpNotFound, WrongCode
from gatehouse.platform.access.mfa.passkeys import Site
from gatehouse.platform.access.mfa.person import Who, asking, must_have_shown_one, proved
from gatehouse.platform.access.mfa.schemas import Verification
from gatehouse.platform.access.mfa.table import PasskeyRow
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.sessions.schemas import Tokens
from gatehouse.platform.access.sessions.service import Enter
from gatehouse.platform.access.users import rights
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import changing

log = structlog.get_logger(__name__)

T = TypeVar("T")

#: RFC 8176: a one-time password; a key that is in a piece of hardware, or that software copies between devices.
_ONE_TIME: Final = "otp"
_IN_HARDWARE, _IN_SOFTWARE = "hwk", "swk"


async def verify(request: Request, host: Host, who: Who, given: Verification, enter: Enter[T]) -> T | Tokens:
    """Finishes a login, or steps a session up. A wrong one counts. Raises `WrongCode`, `TooManyAttempts`,
    `InvalidMfaToken`, `PasskeysUnavailable`, `Unprocessable`."""
    needed = "credential" if given.method == "webauthn" else "code"
    if getattr(given, needed) is None:
        raise Unprocessable(faults=[FieldFault(needed, f"is needed for {given.method}")])
    at = passkeys.site(request, host) if given.method == "webauthn" else None
    async with changing(request, host, who.tenant_id, who.caller) as change:
        asked = await asking(change, who)
        refused = await attempts.refused(change, asked.user)
        if refused is not None:
            host.figures.mfa_verifications.add((given.method, "limited"))
            raise refused
        factor = await _judged(change, host, asked.user, given, at)
        if factor is not None:
            answer = await proved(change, host, request, asked, factor=factor, enter=enter)
            change.record("mfa.verified", "user", asked.user.id, method=given.method)
            host.figures.mfa_verifications.add((given.method, "success"))
            return answer
        await attempts.count(change, asked.user)
        if asked.login is not None:
            await pending.went_wrong(change.session, asked.login)
        change.record("mfa.failed", "user", asked.user.id, outcome="failure", method=given.method)
        host.figures.mfa_verifications.add((given.method, "failure"))
    # Raised only now: the count is committed.
    raise WrongCode


async def _judged(change: Change, host: Host, user: UserRow, given: Verification, at: Site | None) -> str | None:
    """How RFC 8176 names what was shown; None where it is not right."""
    stands = await pending.standing(change.session, user)
    if given.method not in stands.usable:
        return None
    if at is not None:
        passkey = await passkeys.asserted(change, user, at, given.credential or {})
        if passkey is None:
            return None
        return _IN_SOFTWARE if passkey.synced else _IN_HARDWARE
    code = given.code or ""
    if given.method == "recovery":
        right = await table.use_recovery_code(change.session, user.id, recovery.digest(user.id, code))
    else:
        right = await _totp(change, host, user, code)
    return _ONE_TIME if right else None


async def _totp(change: Change, host: Host, user: UserRow, code: str) -> bool:
    row = await table.totp(change.session, user.id)
    assert row is not None
    try:
        secret = host.sealer.open(row.sealed_secret, context=totp.context(row.tenant_id, row.id)).decode()
    except CannotOpen as error:
        # Recovery codes go on, and an administrator's reset: the operator has to know, not whoever signs in.
        log.warning("mfa.secret_does_not_open", user_id=str(user.id), reason=str(error))
        return False
    step = totp.step_of(secret, code, now=host.clock.now(), after=row.last_step)
    if step is None:
        return False
    row.last_step, row.last_used_at = step, utc_now()
    return True


async def remove_totp(change: Change, caller: Caller) -> None:
    """Raises `TotpNotFound`, `MfaRequired`."""
    user = await _of_whom(change, caller)
    if await table.totp(change.session, user.id) is None:
        raise TotpNotFound
    await table.drop_totp(change.session, user.id, confirmed=True)
    await _removed(change, user, "totp")


async def remove_passkey(change: Change, caller: Caller, passkey: PasskeyRow) -> None:
    """One's own. Raises `PasskeyNotFound`, `MfaRequired`."""
    user = await _of_whom(change, caller)
    if passkey.user_id != user.id:
        raise PasskeyNotFound
    await change.session.delete(passkey)
    await change.session.flush()
    await _removed(change, user, "webauthn")


def rename_passkey(change: Change, caller: Caller, passkey: PasskeyRow, name: str) -> PasskeyRow:
    """One's own. Raises `PasskeyNotFound`."""
    if passkey.user_id != caller.user_id:
        raise PasskeyNotFound
    passkey.name = name
    return passkey


async def new_recovery_codes(change: Change, caller: Caller) -> list[str]:
    """Raises `NothingEnrolled`, `MfaRequired`."""
    user = await _of_whom(change, caller)
    if not (await pending.standing(change.session, user)).enrolled:
        raise NothingEnrolled
    return await recovery.make(change, user)


async def reset(change: Change, caller: Caller, user: UserRow) -> None:
    """All methods of a user go, and the sessions: who held the lost phone may hold one of those too. Raises
    `CannotGrant`, `OperatorsOnly`."""
    rights.may_change(caller, user)
    await table.drop_everything(change.session, user.id)
    await end_sessions(change, user.id, "mfa_reset")
    change.record("mfa.reset", "user", user.id)
    change.touch("user", user.id, urgent=True)


async def _removed(change: Change, user: UserRow, method: str) -> None:
    if not (await pending.standing(change.session, user)).enrolled:
        await table.drop_recovery_codes(change.session, user.id)
    change.record("mfa.removed", "user", user.id, method=method)
    change.touch("user", user.id, urgent=True)


async def _of_whom(change: Change, caller: Caller) -> UserRow:
    """The caller's own row, locked, once they may change their second factors. Raises `MfaRequired`."""
    user = await change.session.get_one(UserRow, caller.user_id, with_for_update=True)
    must_have_shown_one(caller, await pending.standing(change.session, user))
    return user
