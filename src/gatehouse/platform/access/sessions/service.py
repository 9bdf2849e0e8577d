"""Opens, refreshes and ends sessions."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from fastapi import Request
from sqlalchemy import select

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import Caller, CallerKind, Role, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.sessions import pending, table
from gatehouse.platform.access.sessions.errors import (
    AddressNotConfirmed,
    InvalidRefreshToken,
    LoginFailed,
    SessionNotFound,
    TenantRequired,
)
from gatehouse.platform.access.sessions.lifetimes import access_token_seconds, ends_at
from gatehouse.platform.access.sessions.schemas import Login, Session, Tokens
from gatehouse.platform.access.sessions.table import RefreshTokenRow, SessionRow, SignInAccount, SignInCandidates
from gatehouse.platform.access.users import one_time, rights
from gatehouse.platform.access.users.schemas import User
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.policies.table import session_policy
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_MAX_USER_AGENT_CHARACTERS: Final = 255
_ENDED_BY_ADMINISTRATOR: Final = "ended_by_administrator"


class LoginCompletion(Protocol[T_co]):
    """Callback that completes an authenticated sign-in. Returns tokens, or the secret of a browser's cookie."""

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


async def login(request: Request, host: Host, body: Login, complete: LoginCompletion[T]) -> T:
    """Verify the password, and complete the sign-in if no second factor is required.

    If the password is wrong or there is no account, raises `LoginFailed`, always after the same amount of work. If the
    password is right, may raise `TenantRequired`, `AddressNotConfirmed`, `SecondFactorRequired`.
    """
    candidates = await _login_candidates(host, body)
    # Uses no database connection while hashing, so that a flood of sign-ins does not starve the administration API.
    hashes = [account.password_hash for account in candidates.accounts]
    matching = await host.passwords.matching(hashes, body.password, checks=candidates.checks)
    if not matching:
        # Records in the background, because the time that recording takes would reveal that the account exists.
        await host.later.run(_record_failures(request, host, candidates.accounts))
        raise LoginFailed
    if len(matching) > 1:
        raise TenantRequired([candidates.accounts[index].tenant for index in matching])
    account = candidates.accounts[matching[0]]
    current_hash = await _current_hash(host, account, body.password)
    async with changing(request, host, account.tenant_id) as change:
        user = await _lock_verified_user(change, account)
        user.password_hash = current_hash
        if user.awaits_confirmation and host.settings.mail is not None:
            # Mails the link again, because the first mail may be lost, or its link may have expired.
            await one_time.mail_on_request(change, user, one_time.ADDRESS_CONFIRMATION, host.sealer)
            error: Refusal = AddressNotConfirmed()
        else:
            requirements = await pending.factor_requirements(change.session, user)
            if not requirements.required:
                return await complete(change, host, user, request, amr=["pwd"])
            error = await pending.begin_pending_login(change, user, requirements, amr=["pwd"])
    # Raised after the commit, which stores the token that the error contains.
    raise error


async def complete_with_tokens(
    change: Change,
    host: Host,
    user: UserRow,
    request: Request,
    *,
    amr: list[str],
    mfa_at: datetime | None = None,
) -> Tokens:
    """Complete a sign-in at the API: open a session and return its tokens."""
    session = await open_session(change, user, request, amr=amr, mfa_at=mfa_at)
    requirements = await pending.factor_requirements(change.session, user)
    tokens_response = await issue_tokens(change, host, user, session)
    tokens_response.mfa_enrollment_deadline = requirements.deadline
    return tokens_response


async def _record_failures(request: Request, host: Host, accounts: Sequence[SignInAccount]) -> None:
    """Record the failed sign-in for each account. The events have no actor, because the caller is unknown."""
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
    """Open a session for a user who has just authenticated, and record `login.succeeded`. `amr` are the authentication
    methods (RFC 8176). `not_after` is the latest time at which the session may end. If the policy's maximum is reached,
    the oldest sessions end. The caller issues tokens, if any, with `issue_tokens`."""
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
        ip=change.origin.ip,
        user_agent=request.headers.get("user-agent", "")[:_MAX_USER_AGENT_CHARACTERS] or None,
        amr=amr,
        mfa_at=mfa_at,
        tokens_until=None,
        not_after=not_after,
    )
    session.expires_at = ends_at(session, policy)
    change.caller = as_caller(user, session)
    if policy.max_sessions is not None:
        await table.lock_user(change.session, user.id)
        await _end_excess_sessions(change, user, policy.max_sessions - 1)
    change.session.add(session)
    await change.session.flush()
    user.last_login_at = now
    change.record("login.succeeded", "user", user.id, session_id=session.id, amr=amr)
    return session


async def _end_excess_sessions(change: Change, user: UserRow, max_sessions: int) -> None:
    excess = table.open_sessions(user.id).offset(max_sessions)
    for old in (await change.session.scalars(excess)).all():
        await end_session(change, old, "too_many_sessions")


async def issue_tokens(
    change: Change,
    host: Host,
    user: UserRow,
    session: SessionRow,
    *,
    renewable: bool = True,
    max_seconds: int | None = None,
) -> Tokens:
    """Return an access token whose lifetime is at most `max_seconds`. It comes with the session's next refresh token if
    `renewable` is true and the policy allows refresh tokens."""
    policy = await session_policy(change.session)
    lifetime = access_token_seconds(session, policy)
    if max_seconds is not None:
        lifetime = min(lifetime, max_seconds)
    claims: dict[str, Any] = {
        "sub": str(user.id),
        "tid": str(user.tenant_id),
        "sid": str(session.id),
        # The role is for information only. Each request checks the user's current rights.
        "role": user.role,
        "amr": session.amr,
    }
    if session.mfa_at is not None:
        claims["mfa_at"] = int(session.mfa_at.timestamp())
    expires_at = utc_now() + timedelta(seconds=lifetime)
    session.tokens_until = max(expires_at, session.tokens_until or expires_at)
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
    """Return new tokens for an unused refresh token. A used refresh token ends its session. Raises
    `InvalidRefreshToken`."""
    digest = tokens.digest(token)
    async with host.database.service() as lookup:
        owner = await table.refresh_token_owner(lookup, digest)
    if owner is None:
        raise InvalidRefreshToken
    tokens_response: Tokens | None = None
    tenant_id, session_id = owner
    async with changing(request, host, tenant_id) as change:
        session = await table.lock_session(change.session, session_id)
        row = await change.session.get(RefreshTokenRow, digest)
        if session is not None and row is not None and session.open() and row.expires_at > utc_now():
            tokens_response = await _rotate(change, host, session, row)
    # Raised only after the commit, which may have ended the session.
    if tokens_response is None:
        raise InvalidRefreshToken
    return tokens_response


async def _rotate(change: Change, host: Host, session: SessionRow, row: RefreshTokenRow) -> Tokens | None:
    user = await change.session.get(UserRow, session.user_id)
    if user is None or not user.is_active:
        return None
    if row.used_at is not None:
        await end_sessions(change, user.id, "refresh_token_reused", only=session.id)
        change.record("session.refresh_reused", "session", session.id, outcome="failure", user_id=user.id)
        return None
    policy = await session_policy(change.session)
    # Applies the current policy: its lifetimes may have become shorter since the session was last used.
    if not policy.refresh_token_enabled or ends_at(session, policy) <= utc_now():
        return None
    if await end_if_excess(change, session):
        return None
    row.used_at = session.last_seen_at = utc_now()
    session.expires_at = ends_at(session, policy)
    change.caller = as_caller(user, session)
    change.record("session.refreshed", "session", session.id)
    return await issue_tokens(change, host, user, session)


async def end_session(change: Change, session: SessionRow, reason: str) -> bool:
    """End one session and record it. Return False if it had already ended."""
    ended = bool(await end_sessions(change, session.user_id, reason, only=session.id))
    if ended:
        change.record("session.ended", "session", session.id, reason=reason)
    return ended


async def end_if_excess(change: Change, session: SessionRow) -> bool:
    """End the session if the user's newer sessions alone reach the policy's maximum, which may have become smaller.
    Return whether the session was ended."""
    policy = await session_policy(change.session)
    if policy.max_sessions is None or await table.newer_sessions(change.session, session) < policy.max_sessions:
        return False
    await end_session(change, session, "too_many_sessions")
    return True


async def end_own_session(change: Change, caller: Caller, session: SessionRow) -> None:
    """End one of the caller's sessions. Raises `SessionNotFound` if it is another user's, or has already ended."""
    if session.user_id != caller.user_id or not await end_session(change, session, "ended_by_user"):
        raise SessionNotFound


def to_shown(rows: Sequence[SessionRow], caller: Caller) -> list[Session]:
    return [Session.model_validate({**_fields(row), "current": row.id == caller.session_id}) for row in rows]


async def end_users_session(change: Change, caller: Caller, user: UserRow, session: SessionRow) -> None:
    """End one session of a user, for an administrator. Raises `OperatorsOnly`, and `SessionNotFound` if it is another
    user's or has already ended."""
    rights.require_may_remove(caller, user)
    if session.user_id != user.id or not await end_session(change, session, _ENDED_BY_ADMINISTRATOR):
        raise SessionNotFound


async def end_users_sessions(change: Change, caller: Caller, user: UserRow) -> None:
    """End all sessions of a user, and sign-ins that wait for a second factor, for an administrator. Raises
    `OperatorsOnly`."""
    rights.require_may_remove(caller, user)
    for session_id in await end_sessions(change, user.id, _ENDED_BY_ADMINISTRATOR):
        change.record("session.ended", "session", session_id, reason=_ENDED_BY_ADMINISTRATOR)


async def log_out(change: Change, caller: Caller) -> None:
    """End the caller's session."""
    session = await change.session.get(SessionRow, caller.session_id) if caller.session_id else None
    if session is not None:
        await end_session(change, session, "logout")


def as_caller(user: UserRow, session: SessionRow | None) -> Caller:
    """Return the user as the acting caller for the audit chain, for requests that were not authenticated by a
    credential."""
    return Caller(
        kind=CallerKind.USER,
        tenant_id=TenantId(user.tenant_id),
        user_id=user.id,
        session_id=session.id if session else None,
        email=emails.visible_address(user.email),
        role=Role(user.role),
        operator=user.operator,
    )


async def _login_candidates(host: Host, body: Login) -> SignInCandidates:
    # The name is only converted to lower case. The limit on guesses counts by this spelling, so no other spelling may
    # match an account.
    name = (body.email or body.username or "").lower()
    async with host.database.service() as session:
        return await table.login_candidates(session, name, tenant=body.tenant)


async def _current_hash(host: Host, account: SignInAccount, password: str) -> str:
    assert account.password_hash is not None
    if host.passwords.outdated(account.password_hash):
        return await host.passwords.hash_again(password)
    return account.password_hash


async def _lock_verified_user(change: Change, account: SignInAccount) -> UserRow:
    """Return the account's row, locked. Raises `LoginFailed` if it has changed since its password was verified."""
    query = select(UserRow).where(UserRow.id == account.id, UserRow.is_active).with_for_update()
    user = (await change.session.scalars(query)).one_or_none()
    if user is None or user.password_hash != account.password_hash:
        raise LoginFailed
    return user


def _fields(row: SessionRow) -> dict[str, object]:
    return {column.key: getattr(row, column.key) for column in SessionRow.__table__.columns}
