"""The rules of enrolling a second factor, by a user in a session or by one who cannot sign in without."""

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
    MethodNotAllowed,
    NotConfirmed,
    TooManyPasskeys,
)
from gatehouse.platform.access.mfa.person import Asking, Who, asking, must_have_shown_one, proved
from gatehouse.platform.access.mfa.schemas import TotpSecret
from gatehouse.platform.access.mfa.table import PasskeyRow, TotpRow
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.sessions.schemas import Tokens
from gatehouse.platform.access.sessions.service import Enter
from gatehouse.platform.change import Change
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import changing

T = TypeVar("T")

_MOST_PASSKEYS = 20


async def begin_totp(request: Request, host: Host, who: Who) -> TotpSecret:
    """A secret that waits for its first code; an app that is in use goes on until then."""
    async with changing(request, host, who.tenant_id, who.caller) as change:
        asked = await _may_enrol(change, who, "totp")
        await table.drop_totp(change.session, asked.user.id, confirmed=False)
        secret, row_id = totp.new_secret(), new_id()
        change.session.add(
            TotpRow(
                id=row_id,
                tenant_id=asked.user.tenant_id,
                user_id=asked.user.id,
                sealed_secret=host.sealer.seal(secret.encode(), context=totp.context(asked.user.tenant_id, row_id)),
                last_step=0,
                created_at=utc_now(),
                confirmed_at=None,
                last_used_at=None,
            )
        )
        return TotpSecret(secret=secret, otpauth_url=totp.url(secret, asked.user.email))


async def confirm_totp(
    request: Request, host: Host, who: Who, code: str, enter: Enter[T]
) -> tuple[T | Tokens, list[str] | None]:
    """What the login or the session goes on with, and recovery codes where there were none. Raises `NotConfirmed`."""
    async with changing(request, host, who.tenant_id, who.caller) as change:
        asked = await _may_enrol(change, who, "totp")
        row = await table.totp(change.session, asked.user.id, confirmed=False)
        if row is None:
            raise NotConfirmed
        secret = host.sealer.open(row.sealed_secret, context=totp.context(row.tenant_id, row.id)).decode()
        step = totp.step_of(secret, code, now=host.clock.now(), after=row.last_step)
        if step is None:
            raise NotConfirmed
        await table.drop_totp(change.session, asked.user.id, confirmed=True)
        row.last_step, row.confirmed_at, row.last_used_at = step, utc_now(), utc_now()
        return await _enrolled(change, host, request, asked, method="totp", factor="otp", enter=enter)


async def begin_passkey(request: Request, host: Host, who: Who) -> dict[str, Any]:
    """Options for the browser. Raises `PasskeysUnavailable`, `TooManyPasskeys`."""
    at = passkeys.site(request, host)
    async with changing(request, host, who.tenant_id, who.caller) as change:
        asked = await _may_enrol(change, who, "webauthn")
        await _require_room(change, asked.user.id)
        return await passkeys.registration(change, asked.user, at)


async def finish_passkey(
    request: Request, host: Host, who: Who, name: str, credential: dict[str, Any], *, enter: Enter[T]
) -> tuple[T | Tokens, list[str] | None]:
    """As `confirm_totp`. Raises `BadCredential`, `AlreadyEnrolled`, `PasskeysUnavailable`, `TooManyPasskeys`."""
    at = passkeys.site(request, host)
    async with changing(request, host, who.tenant_id, who.caller) as change:
        asked = await _may_enrol(change, who, "webauthn")
        verified = await passkeys.registered(change, asked.user, at, credential)
        if verified is not None:
            if await _known(change, verified.credential_id):
                raise AlreadyEnrolled
            # Asked again: any number of registrations may have begun.
            await _require_room(change, asked.user.id)
            change.session.add(
                PasskeyRow(
                    id=new_id(),
                    tenant_id=asked.user.tenant_id,
                    user_id=asked.user.id,
                    credential_id=verified.credential_id,
                    public_key=verified.credential_public_key,
                    sign_count=verified.sign_count,
                    name=name,
                    transports=passkeys.transports(credential),
                    synced=passkeys.synced(verified),
                    created_at=utc_now(),
                    last_used_at=None,
                )
            )
            factor = "swk" if passkeys.synced(verified) else "hwk"
            return await _enrolled(change, host, request, asked, method="webauthn", factor=factor, enter=enter)
    # Raised only now: the challenge is used up.
    raise BadCredential


async def _require_room(change: Change, user_id: UUID) -> None:
    """For one more passkey. Raises `TooManyPasskeys`."""
    count = partial(table.count_passkeys, user_id=user_id)
    limit = _MOST_PASSKEYS
    await require_room(change.session, ScopedLock.PASSKEYS, count, limit=limit, full=TooManyPasskeys, scope=user_id)


async def begin_assertion(request: Request, host: Host, who: Who) -> dict[str, Any]:
    """Options for the browser to show one of the user's passkeys. Raises `PasskeysUnavailable`."""
    at = passkeys.site(request, host)
    async with changing(request, host, who.tenant_id, who.caller) as change:
        asked = await asking(change, who)
        return await passkeys.assertion(change, asked.user, at)


async def _may_enrol(change: Change, who: Who, method: str) -> Asking:
    """Raises `MethodNotAllowed`, `EnrolmentOnly`, `MfaRequired`."""
    asked = await asking(change, who)
    stands = await pending.standing(change.session, asked.user)
    if method not in stands.policy.methods:
        raise MethodNotAllowed
    if asked.login is not None:
        # Whoever has the password alone must not add a factor beside the one that they lack.
        if stands.usable or not asked.login.enrolling:
            raise EnrolmentOnly
    else:
        assert who.caller is not None
        must_have_shown_one(who.caller, stands)
    return asked


async def _enrolled(
    change: Change, host: Host, request: Request, asked: Asking, *, method: str, factor: str, enter: Enter[T]
) -> tuple[T | Tokens, list[str] | None]:
    await change.session.flush()
    answer = await proved(change, host, request, asked, factor=factor, enter=enter)
    change.record("mfa.enrolled", "user", asked.user.id, method=method)
    change.touch("user", asked.user.id, urgent=True)
    some = await table.recovery_codes_left(change.session, asked.user.id)
    return answer, None if some else await recovery.make(change, asked.user)


async def _known(change: Change, credential_id: bytes) -> UUID | None:
    return await change.session.scalar(select(PasskeyRow.id).where(PasskeyRow.credential_id == credential_id))
