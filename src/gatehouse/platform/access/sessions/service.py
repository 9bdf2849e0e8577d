"""The rules of sessions: opening one, refreshing it, ending it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from fastapi import Request
from sqlalchemy import select

from gatehouse.foundation import emails, tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller, CallerKind, Role, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.sessions import pending, table
from gatehouse.platform.access.sessions.errors import InvalidRefreshToken, LoginFailed, SessionNotFound, TenantNeeded
from gatehouse.platform.access.sessions.lifetimes import access_token_seconds, ends_at
from gatehouse.platform.access.sessions.schemas import Login, Tokens
from gatehouse.platform.access.sessions.table import Account, Candidates, RefreshTokenRow, SessionRow
from gatehouse.platform.access.users.schemas import User
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change
from gatehouse.platform.organization.policies.table import session_policy
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import changing

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_MAX_AGENT_CHARS: Final = 255


class Enter(Protocol[T_co]):
    """How a sign-in ends that has shown enough: with tokens, or with a browser's cookie."""

    async def __call__(
        self,
        change: Change,
        host: Host,
        user: UserRow,
        request: Request,
        *,
        amr: list[str],
        mfa_at: datetime | None = None,
    ) -> T_co: ...


async def login(request: Request, host: Host, given: Login, enter: Enter[T]) -> T:
    """Judges the password, and enters where no second factor is asked for.

    Raises `LoginFailed` for whatever is wrong, after the same work for whoever asks; `TenantNeeded`;
    `SecondFactorNeeded`.
    """
    candidates = await _candidates(host, given)
    # No connection is held meanwhile: a flood of sign-ins must not take administration's.
    hashes = [account.password_hash for account in candidates.accounts]
    right = await host.passwords.matching(hashes, given.password, checks=candidates.checks)
    if not right:
        # After the answer: writing it down takes time that an unknown address would not take.
        await host.later.run(_record_failures(request, host, candidates.accounts))
        raise LoginFailed
    if len(right) > 1:
        raise TenantNeeded([candidates.accounts[place].tenant for place in right])
    account = candidates.accounts[right[0]]
    anew = await _rehashed(host, account, given.password)
    async with changing(request, host, account.tenant_id) as change:
        user = await _still(change, account)
        user.password_hash = anew
        stands = await pending.standing(change.session, user)
        if not stands.asked:
            return await enter(change, host, user, request, amr=["pwd"])
        needed = await pending.begin(change, user, stands, amr=["pwd"])
    # Raised only now: the token that it holds is committed.
    raise needed


async def enter_with_tokens(
    change: Change,
    host: Host,
    user: UserRow,
    request: Request,
    *,
    amr: list[str],
    mfa_at: datetime | None = None,
) -> Tokens:
    """The API's way in."""
    session = await open_session(change, user, request, amr=amr, mfa_at=mfa_at)
    stands = await pending.standing(change.session, user)
    answer = await tokens_of(change, host, user, session)
    answer.mfa_enrollment_deadline = stands.due
    return answer


async def _record_failures(request: Request, host: Host, accounts: Sequence[Account]) -> None:
    """The events have no actor: who tried is not known."""
    for account in accounts:
        async with changing(request, host, account.tenant_id) as change:
            change.record("login.failed", "user", account.id, outcome="failure", reason="wrong_password")


async def open_session(
    change: Change,
    user: UserRow,
    request: Request,
    *,
    amr: list[str],
    mfa_at: datetime | None = None,
    not_after: datetime | None = None,
) -> SessionRow:
    """A new session of a user who has just proved who they are, recorded as `login.succeeded`. `amr` says how
    (RFC 8176), `not_after` how long it may last at most. Ends the oldest ones where the policy allows no more. Whoever
    opens one makes its tokens, if any, with `tokens_of`."""
    now, policy = utc_now(), await session_policy(change.session)
    session = SessionRow(
        id=new_id(),
        tenant_id=user.tenant_id,
        user_id=user.id,
        created_at=now,
        last_seen_at=now,
        expires_at=now,
        revoked_at=None,
        revoked_reason=None,
        ip=change.ip,
        user_agent=request.headers.get("user-agent", "")[:_MAX_AGENT_CHARS] or None,
        amr=amr,
        mfa_at=mfa_at,
        tokens_until=None,
        not_after=not_after,
    )
    session.expires_at = ends_at(session, policy)
    change.caller = as_caller(user, session)
    if policy.most_sessions is not None:
        await table.lock_user(change.session, user.id)
        await _make_room(change, user, policy.most_sessions - 1)
    change.session.add(session)
    await change.session.flush()
    user.last_login_at = now
    change.record("login.succeeded", "user", user.id, session_id=session.id, amr=amr)
    return session


async def _make_room(change: Change, user: UserRow, most: int) -> None:
    for old in (await table.open_sessions(change.session, user.id))[most:]:
        await end(change, old, "too_many_sessions")


async def tokens_of(
    change: Change, host: Host, user: UserRow, session: SessionRow, *, renewable: bool = True
) -> Tokens:
    """An access token, and the session's next refresh token where it is `renewable` and the policy has them."""
    policy = await session_policy(change.session)
    lifetime = access_token_seconds(session, policy)
    claims: dict[str, Any] = {
        "sub": str(user.id),
        "tid": str(user.tenant_id),
        "sid": str(session.id),
        # For information: rights are judged by the user as they are at each request.
        "role": user.role,
        "amr": session.amr,
    }
    if session.mfa_at is not None:
        claims["mfa_at"] = int(session.mfa_at.timestamp())
    until = utc_now() + timedelta(seconds=lifetime)
    session.tokens_until = max(until, session.tokens_until or until)
    renewing = renewable and policy.refresh_token_enabled
    return Tokens(
        access_token=await host.signer.sign(claims, lifetime),
        expires_in=lifetime,
        refresh_token=_refresh_token(change, session) if renewing else None,
        user=User.model_validate(user),
    )


def _refresh_token(change: Change, session: SessionRow) -> str:
    minted = tokens.mint_token("rt_")
    change.session.add(
        RefreshTokenRow(
            digest=minted.digest,
            tenant_id=session.tenant_id,
            session_id=session.id,
            issued_at=utc_now(),
            expires_at=session.expires_at,
            used_at=None,
        )
    )
    return minted.plaintext


async def refresh(request: Request, host: Host, token: str) -> Tokens:
    """New tokens for an unused one. A used one ends its session. Raises `InvalidRefreshToken`."""
    digest = tokens.digest(token)
    async with host.database.service() as lookup:
        owner = await table.refresh_token_owner(lookup, digest)
    if owner is None:
        raise InvalidRefreshToken
    answer: Tokens | None = None
    tenant_id, session_id = owner
    async with changing(request, host, tenant_id) as change:
        session = await table.locked_session(change.session, session_id)
        row = await change.session.get(RefreshTokenRow, digest)
        if session is not None and row is not None and session.open() and row.expires_at > utc_now():
            answer = await _rotate(change, host, session, row)
    # Raised only now: the end of the session is committed.
    if answer is None:
        raise InvalidRefreshToken
    return answer


async def _rotate(change: Change, host: Host, session: SessionRow, row: RefreshTokenRow) -> Tokens | None:
    user = await change.session.get(UserRow, session.user_id)
    if user is None or not user.is_active:
        return None
    if row.used_at is not None:
        await end_sessions(change, user.id, "refresh_token_reused", only=session.id)
        change.record("session.refresh_reused", "session", session.id, outcome="failure", user_id=user.id)
        return None
    policy = await session_policy(change.session)
    # By the policy of now: it may have become shorter since the session was used.
    if not policy.refresh_token_enabled or ends_at(session, policy) <= utc_now():
        return None
    if policy.most_sessions is not None and await table.newer_sessions(change.session, session) >= policy.most_sessions:
        await end(change, session, "too_many_sessions")
        return None
    row.used_at = session.last_seen_at = utc_now()
    session.expires_at = ends_at(session, policy)
    change.caller = as_caller(user, session)
    change.record("session.refreshed", "session", session.id)
    return await tokens_of(change, host, user, session)


async def end(change: Change, session: SessionRow, reason: str) -> bool:
    """Ends one session, and says so. False where it had ended before."""
    ended = bool(await end_sessions(change, session.user_id, reason, only=session.id))
    if ended:
        change.record("session.ended", "session", session.id, reason=reason)
    return ended


async def end_own(change: Change, caller: Caller, session: SessionRow) -> None:
    """Another's, or one that has ended, is not there. Raises `SessionNotFound`."""
    if session.user_id != caller.user_id or not await end(change, session, "ended_by_user"):
        raise SessionNotFound


async def log_out(change: Change, caller: Caller) -> None:
    """Ends the session that asks."""
    session = await change.session.get(SessionRow, caller.session_id) if caller.session_id else None
    if session is not None:
        await end(change, session, "logout")


def as_caller(user: UserRow, session: SessionRow | None) -> Caller:
    """Who acts, for the audit chain, where no credential was presented."""
    return Caller(
        kind=CallerKind.USER,
        tenant_id=TenantId(user.tenant_id),
        user_id=user.id,
        session_id=session.id if session else None,
        email=emails.shown(user.email),
        role=Role(user.role),
        operator=user.operator,
    )


async def _candidates(host: Host, given: Login) -> Candidates:
    # In lower case and no more: the limit of guesses counts by this spelling, so it must be the only one that works.
    name = (given.email or given.username or "").lower()
    async with host.database.service() as session:
        return await table.candidates(session, name, tenant=given.tenant)


async def _rehashed(host: Host, account: Account, password: str) -> str:
    assert account.password_hash is not None
    if host.passwords.outdated(account.password_hash):
        return await host.passwords.hash_again(password)
    return account.password_hash


async def _still(change: Change, account: Account) -> UserRow:
    """The account's row, locked, if it is still the one whose password was judged. Raises `LoginFailed`."""
    query = select(UserRow).where(UserRow.id == account.id, UserRow.is_active).with_for_update()
    user = (await change.session.scalars(query)).one_or_none()
    if user is None or user.password_hash != account.password_hash:
        raise LoginFailed
    return user
