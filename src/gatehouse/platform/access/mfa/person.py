"""Who shows or enrols a second factor: somebody signing in, or a user in a session."""

import time
from typing import TypeAlias, TypeVar
from uuid import UUID

import msgspec
from fastapi import Request

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.platform.access.mfa.errors import InvalidMfaToken
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.sessions.pending import PendingLoginRow, Standing
from gatehouse.platform.access.sessions.schemas import Tokens
from gatehouse.platform.access.sessions.service import Enter, tokens_of
from gatehouse.platform.access.sessions.table import SessionRow, locked_session
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.callers import MfaRequired
from gatehouse.platform.change import Change
from gatehouse.platform.live.credentials import InvalidToken
from gatehouse.platform.ports import Host

T = TypeVar("T")


class SigningIn(msgspec.Struct, frozen=True):
    tenant_id: TenantId
    user_id: UUID
    token: str
    caller: None = None


class InSession(msgspec.Struct, frozen=True):
    tenant_id: TenantId
    user_id: UUID
    caller: Caller


Who: TypeAlias = SigningIn | InSession


async def signing_in(host: Host, token: str) -> SigningIn:
    """Raises `InvalidMfaToken`."""
    async with host.database.service() as lookup:
        owner = await pending.owner(lookup, token)
    if owner is None:
        raise InvalidMfaToken
    return SigningIn(*owner, token)


def in_session(caller: Caller) -> InSession:
    assert caller.tenant_id is not None
    assert caller.user_id is not None
    return InSession(caller.tenant_id, caller.user_id, caller)


class Asking(msgspec.Struct):
    """The rows behind it, locked: the user's first, so that all that is done about their factors is one after the
    other. One of `login` and `session` is there."""

    user: UserRow
    login: PendingLoginRow | None
    session: SessionRow | None


async def asking(change: Change, who: Who) -> Asking:
    """Raises `InvalidMfaToken`, `InvalidToken` where it has ended meanwhile."""
    user = await change.session.get(UserRow, who.user_id, with_for_update=True)
    if isinstance(who, SigningIn):
        login = await pending.locked(change.session, who.token)
        if user is None or not user.is_active or login is None:
            raise InvalidMfaToken
        return Asking(user, login, None)
    session = await locked_session(change.session, who.caller.session_id) if who.caller.session_id else None
    if user is None or session is None or not session.open():
        raise InvalidToken
    return Asking(user, None, session)


def must_have_shown_one(caller: Caller, stands: Standing) -> None:
    """Before a user's own second factors are changed, whatever else step-up is asked for: without it, whoever found an
    open browser would make the account theirs. Raises `MfaRequired`."""
    if stands.usable and stands.policy.level != "off" and not caller.has_fresh_factor(time.time()):
        raise MfaRequired


async def proved(
    change: Change, host: Host, request: Request, asked: Asking, *, factor: str, enter: Enter[T]
) -> T | Tokens:
    """A second factor was right: the login goes on, or the session is stepped up. `factor` as RFC 8176 names it."""
    if asked.login is not None:
        amr = [*asked.login.amr, factor, "mfa"]
        await change.session.delete(asked.login)
        return await enter(change, host, asked.user, request, amr=amr, mfa_at=utc_now())
    assert asked.session is not None
    asked.session.amr = list(dict.fromkeys([*asked.session.amr, factor, "mfa"]))
    asked.session.mfa_at = utc_now()
    return await tokens_of(change, host, asked.user, asked.session, renewable=False)
