"""Opens sessions in browsers, and finds the one that a browser shows."""

from datetime import datetime
from uuid import UUID

from starlette.requests import Request

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.platform.access.browser import cookie, table
from gatehouse.platform.access.browser.table import BrowserSessionRow
from gatehouse.platform.access.sessions.lifetimes import ends_at
from gatehouse.platform.access.sessions.service import as_caller, end, open_session
from gatehouse.platform.access.sessions.table import SessionRow, locked_session
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change
from gatehouse.platform.organization.policies.table import session_policy
from gatehouse.platform.organization.policies.values import SessionPolicy
from gatehouse.platform.ports import Host


async def open_in_browser(
    change: Change, host: Host, user: UserRow, request: Request, *, amr: list[str], mfa_at: datetime | None = None
) -> str:
    """A new session of a user who has just proved who they are; the answer is the cookie's secret, always a new one:
    what the browser held before is worth nothing (no session can be fixed in advance)."""
    # First: it must not count among the sessions that the policy allows.
    await leave_former(change, host, held(request))
    session = await open_session(change, user, request, amr=amr, mfa_at=mfa_at)
    return await open_in_browser_for(change, session)


def held(request: Request) -> bytes | None:
    """The digest of the cookie that the browser shows, believed or not: for `leave_former`, now or later."""
    secret = cookie.secret_of(request)
    return None if secret is None else tokens.digest(secret)


async def leave_former(change: Change, host: Host, digest: bytes | None) -> None:
    """Ends the session that a browser showed until now, whoever's it was: no cookie leads to it any more."""
    if digest is None:
        return
    async with host.database.service() as lookup:
        found = await table.by_secret(lookup, digest)
    if found is None:
        return
    tenant_id, session_id = found
    async with change.inside(tenant_id) as part:
        session = await part.session.get(SessionRow, session_id)
        user = await part.session.get(UserRow, session.user_id) if session is not None else None
        if session is not None and user is not None:
            part.caller = as_caller(user, session)
            await end(part, session, "signed_in_again")


async def open_in_browser_for(change: Change, session: SessionRow) -> str:
    """The same for a session that is open already."""
    minted = tokens.mint_token("gws_")
    change.session.add(
        BrowserSessionRow(
            digest=minted.digest, tenant_id=session.tenant_id, session_id=session.id, created_at=utc_now()
        )
    )
    return minted.plaintext


async def current(request: Request, host: Host) -> tuple[UserRow, SessionRow] | None:
    """Who is signed in in this browser, if session, user and organization are all alive. The rows are for reading."""
    digest = held(request)
    if digest is None:
        return None
    async with host.database.service() as lookup:
        found = await table.by_secret(lookup, digest)
    if found is None:
        return None
    tenant_id, session_id = found
    async with host.database.tenant(tenant_id) as reading:
        session = await reading.get(SessionRow, session_id)
        user = await reading.get(UserRow, session.user_id) if session is not None else None
        policy = await session_policy(reading)
    if session is None or user is None or not _alive(session, policy) or not user.is_active:
        return None
    return user, session


async def used(change: Change, session_id: UUID) -> SessionRow | None:
    """The session, locked, if it is still open: its time runs anew, as it does at a refresh."""
    session, policy = await locked_session(change.session, session_id), await session_policy(change.session)
    if session is None or not _alive(session, policy):
        return None
    session.last_seen_at = utc_now()
    session.expires_at = ends_at(session, policy)
    return session


def _alive(session: SessionRow, policy: SessionPolicy) -> bool:
    # By the policy of now too: it may have become shorter since the session was used.
    return session.open() and ends_at(session, policy) > utc_now()
