"""Opens browser sessions, and finds the session of a browser's cookie."""

from datetime import datetime
from typing import Final
from uuid import UUID

from starlette.requests import Request

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.browser import cookie, table
from gatehouse.platform.access.browser.origin import require_same_origin
from gatehouse.platform.access.browser.schemas import SessionToken, SignedInOrganization
from gatehouse.platform.access.browser.table import BrowserSessionRow
from gatehouse.platform.access.sessions.lifetimes import ends_at
from gatehouse.platform.access.sessions.service import (
    as_caller,
    end_if_excess,
    end_session,
    issue_tokens,
    open_session,
)
from gatehouse.platform.access.sessions.table import SessionRow, lock_session
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.policies.table import session_policy
from gatehouse.platform.organization.policies.values import SessionRules
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host

#: Lifetime of an access token for a page. It is short because a page can exchange its cookie again at any time.
_TOKEN_SECONDS: Final = 300


class BrowserSessionMissing(Unauthenticated):
    code = "browser_session_missing"
    message = "No session is open in this browser. Sign in at /login."


async def open_in_browser(
    change: Change, host: Host, user: UserRow, request: Request, *, amr: list[str], mfa_at: datetime | None = None
) -> str:
    """Open a session for a user who has just authenticated, and return the secret of its cookie. The secret is always
    new, which prevents session fixation."""
    # The former session ends first, so that it does not count against the policy's maximum.
    await end_former_session(change, host, cookie_digest(request))
    session = await open_session(change, user, request, amr=amr, mfa_at=mfa_at)
    return await add_browser_session(change, session)


def cookie_digest(request: Request) -> bytes | None:
    """Return the digest of the browser's cookie, unverified, for `end_former_session`; None without a cookie."""
    secret = cookie.secret_of(request)
    return None if secret is None else tokens.digest(secret)


async def end_former_session(change: Change, host: Host, digest: bytes | None) -> None:
    """End the browser's former session, because a new cookie replaces its cookie. The session may be another user's."""
    if digest is None:
        return
    async with host.database.service() as lookup:
        browser_session = await table.by_secret(lookup, digest)
    if browser_session is None:
        return
    tenant_id, session_id = browser_session
    async with change.inside(tenant_id) as part:
        session = await part.session.get(SessionRow, session_id)
        user = await part.session.get(UserRow, session.user_id) if session is not None else None
        if session is not None and user is not None:
            part.caller = as_caller(user, session)
            await end_session(part, session, "signed_in_again")


async def add_browser_session(change: Change, session: SessionRow) -> str:
    """Add a browser session for a session that is already open, and return the secret of its cookie."""
    minted = tokens.mint_token("gws_")
    change.session.add(
        BrowserSessionRow(
            digest=minted.digest, tenant_id=session.tenant_id, session_id=session.id, created_at=utc_now()
        )
    )
    return minted.plaintext


async def current_session(request: Request, host: Host) -> tuple[UserRow, SessionRow] | None:
    """Return the user and session of this browser if session, user and organization are active. The rows are not
    locked."""
    digest = cookie_digest(request)
    if digest is None:
        return None
    async with host.database.service() as lookup:
        browser_session = await table.by_secret(lookup, digest)
    if browser_session is None:
        return None
    tenant_id, session_id = browser_session
    async with host.database.tenant(tenant_id) as reading:
        session = await reading.get(SessionRow, session_id)
        user = await reading.get(UserRow, session.user_id) if session is not None else None
        policy = await session_policy(reading)
    if session is None or user is None or not _is_open(session, policy) or not user.is_active:
        return None
    return user, session


async def extend_session(change: Change, session_id: UUID) -> SessionRow | None:
    """Return the session, locked and extended as at a refresh; None if it is no longer open."""
    session, policy = await lock_session(change.session, session_id), await session_policy(change.session)
    if session is None or not _is_open(session, policy):
        return None
    session.last_seen_at = utc_now()
    session.expires_at = ends_at(session, policy)
    return session


async def exchange_cookie(request: Request, host: Host) -> SessionToken:
    """Return an access token for the session of this browser. Raises `ForeignOrigin`, `BrowserSessionMissing`."""
    require_same_origin(request, host)
    browser_session = await current_session(request, host)
    issued = None if browser_session is None else await _issue_token(request, host, *browser_session)
    # Raised only after the commit, which may have ended the session.
    if issued is None:
        raise BrowserSessionMissing
    return issued


async def _issue_token(request: Request, host: Host, user: UserRow, session: SessionRow) -> SessionToken | None:
    async with changing(request, host, user.tenant_id, as_caller(user, session)) as change:
        extended = await extend_session(change, session.id)
        if extended is None or await end_if_excess(change, extended):
            return None
        tokens_response = await issue_tokens(change, host, user, extended, renewable=False, max_seconds=_TOKEN_SECONDS)
        slug, name = await table.organization_of(change.session)
        change.record("session.token_issued", "session", extended.id)
    return SessionToken(
        access_token=tokens_response.access_token,
        expires_in=tokens_response.expires_in,
        user=tokens_response.user,
        organization=SignedInOrganization(slug=slug, name=name),
        has_password=user.password_hash is not None,
    )


def _is_open(session: SessionRow, policy: SessionRules) -> bool:
    # Applies the current policy too: its lifetimes may have become shorter since the session was last used.
    return session.open() and ends_at(session, policy) > utc_now()
