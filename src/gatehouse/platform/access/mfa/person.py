"""The subject of a second factor: a pending login, or a user in a session."""

import time
from typing import TypeAlias, TypeVar
from uuid import UUID

import msgspec
from fastapi import Request

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.platform.access.mfa.errors import InvalidMfaToken
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.sessions.pending import FactorRequirements, PendingLoginRow
from gatehouse.platform.access.sessions.schemas import Tokens
from gatehouse.platform.access.sessions.service import LoginCompletion, issue_tokens
from gatehouse.platform.access.sessions.table import SessionRow, lock_session
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.credentials import InvalidBearerToken
from gatehouse.platform.request.callers import MfaRequired
from gatehouse.platform.request.ports import Host

T = TypeVar("T")


class LoginSubject(msgspec.Struct, frozen=True):
    """The user of a pending login. `token` is the `mfa_token`."""

    tenant_id: TenantId
    user_id: UUID
    token: str
    caller: None = None


class SessionSubject(msgspec.Struct, frozen=True):
    """A user in a session."""

    tenant_id: TenantId
    user_id: UUID
    caller: Caller


MfaSubject: TypeAlias = LoginSubject | SessionSubject


async def login_subject(host: Host, token: str) -> LoginSubject:
    """Return the subject of an `mfa_token`. Raises `InvalidMfaToken`."""
    async with host.database.service() as lookup:
        owner = await pending.pending_login_owner(lookup, token)
    if owner is None:
        raise InvalidMfaToken
    return LoginSubject(*owner, token)


def session_subject(caller: Caller) -> SessionSubject:
    assert caller.tenant_id is not None
    assert caller.user_id is not None
    return SessionSubject(caller.tenant_id, caller.user_id, caller)


class LockedSubject(msgspec.Struct):
    """The locked rows of a subject. The user's row is locked first, which serializes all changes of their factors. One
    of `login` and `session` is set."""

    user: UserRow
    login: PendingLoginRow | None
    session: SessionRow | None


async def lock_subject(change: Change, subject: MfaSubject) -> LockedSubject:
    """Lock the subject's rows. Raises `InvalidMfaToken` or `InvalidBearerToken` if the login or session has ended."""
    user = await change.session.get(UserRow, subject.user_id, with_for_update=True)
    if isinstance(subject, LoginSubject):
        login = await pending.lock_pending_login(change.session, subject.token)
        if user is None or not user.is_active or login is None:
            raise InvalidMfaToken
        return LockedSubject(user, login, None)
    session = await lock_session(change.session, subject.caller.session_id) if subject.caller.session_id else None
    if user is None or session is None or not session.open():
        raise InvalidBearerToken
    return LockedSubject(user, None, session)


def require_fresh_factor(caller: Caller, requirements: FactorRequirements) -> None:
    """Require a fresh second factor before a user's own factors change, independently of the step-up policy: otherwise
    an attacker at an open browser could take over the account. Raises `MfaRequired`."""
    if requirements.usable and requirements.policy.level != "off" and not caller.has_fresh_factor(time.time()):
        raise MfaRequired


async def complete_factor(
    change: Change, host: Host, request: Request, locked: LockedSubject, *, factor: str, complete: LoginCompletion[T]
) -> T | Tokens:
    """Complete the login, or step the session up, after a right second factor. `factor` is its name in RFC 8176."""
    if locked.login is not None:
        amr = [*locked.login.amr, factor, "mfa"]
        await change.session.delete(locked.login)
        return await complete(change, host, locked.user, request, amr=amr, mfa_at=utc_now())
    assert locked.session is not None
    locked.session.amr = list(dict.fromkeys([*locked.session.amr, factor, "mfa"]))
    locked.session.mfa_at = utc_now()
    return await issue_tokens(change, host, locked.user, locked.session, renewable=False)
