"""Sends people who have signed in back to the application, with a code."""

from datetime import timedelta
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import RedirectResponse

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.lists import BadCursor
from gatehouse.platform.access import browser
from gatehouse.platform.access.oauth_clients.redirects import origin
from gatehouse.platform.access.openid import authorization, table
from gatehouse.platform.access.openid.authorization import Asked, Fault
from gatehouse.platform.access.openid.errors import BadAccessToken, BadAuthorizationRequest, NoPublicAddress
from gatehouse.platform.access.sessions.service import as_caller
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.access.tokens import claims, codes
from gatehouse.platform.access.tokens import table as clients
from gatehouse.platform.access.tokens.codes import Wanted
from gatehouse.platform.access.tokens.table import Client
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.organization.policies.table import mfa_policy
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import changing

#: How long somebody who was asked to sign in (again) may take for it.
_PATIENCE_MS: Final = 30 * 60 * 1000
_CONTEXT: Final = "openid asked_at"


def issuer(host: Host) -> str:
    """Raises `NoPublicAddress`: applications believe a name that they can look up, and nothing else."""
    if host.settings.public_url is None:
        raise NoPublicAddress
    return host.issuer


async def authorize(request: Request, host: Host) -> RedirectResponse:
    """Raises `BadAuthorizationRequest`, `NoPublicAddress`; any other fault is the application's to hear."""
    name = issuer(host)
    asked = Asked.read(request.scope["query_string"].decode("ascii", "replace"))
    if await application(host, asked) is None:
        raise BadAuthorizationRequest
    try:
        asked.check()
        found = await browser.current(request, host)
        good = found if found is not None and _recent(asked, found[1], host) else None
        code = None if good is None else await _code(request, host, asked, *good)
        return _sign_in_first(asked, host) if code is None else asked.answer(name, code=code)
    except Fault as fault:
        return asked.answer(name, error=fault.error, error_description=fault.description)


async def by_address(request: Request) -> RedirectResponse:
    """A request that came as a form, as an address. Raises `BadAuthorizationRequest`."""
    if not forms.is_form(request.headers.get("content-type", "")):
        raise BadAuthorizationRequest
    return RedirectResponse(authorization.address(await request.body()), 303)


async def application(host: Host, asked: Asked) -> Client | None:
    """The client that asks, if people may be sent back to that address of its."""
    async with host.database.service() as session:
        client = await clients.client(session, asked.client_id)
    if client is None or not client.signs_people_in or asked.redirect_uri not in client.redirect_uris:
        return None
    return client


async def destination(host: Host, path: str) -> tuple[str | None, str | None]:
    """For the sign-in page: name and origin of the application to which an own path leads in the end, if it does."""
    asked = authorization.of_path(path)
    client = await application(host, asked) if asked is not None else None
    return (None, None) if client is None or asked is None else (client.name, origin(asked.redirect_uri))


async def userinfo(host: Host, token: str | None) -> dict[str, object]:
    """The claims of the person whose access token this is. Raises `BadAccessToken`."""
    if token is None:
        raise BadAccessToken
    async with host.database.service() as lookup:
        found = await table.by_access_token(lookup, tokens.digest(token))
    if found is None:
        raise BadAccessToken
    async with host.database.tenant(found.tenant_id) as session:
        user = await _living(session, found.user_id, found.session_id)
        return await claims.of(session, user, found.scope.split())


async def _living(session: AsyncSession, user_id: UUID, session_id: UUID) -> UserRow:
    user, opened = await session.get(UserRow, user_id), await session.get(SessionRow, session_id)
    if user is None or opened is None or not user.is_active or not opened.open():
        raise BadAccessToken
    return user


async def _code(request: Request, host: Host, asked: Asked, user: UserRow, found: SessionRow) -> str | None:
    """None where the session has ended meanwhile. Raises `Fault`."""
    await _check_address(request, host, user, found)
    async with changing(request, host, user.tenant_id, as_caller(user, found)) as change:
        session = await browser.used(change, found.id)
        if session is None:
            return None
        wanted = Wanted(
            asked.client_id,
            asked.redirect_uri,
            asked.fields["code_challenge"],
            asked.fields.get("nonce"),
            asked.scope,
        )
        code = codes.issue(change, session, wanted)
        change.record("oauth_code.issued", "oauth_client", asked.client_id, scope=asked.scope, session_id=session.id)
    return code


async def _check_address(request: Request, host: Host, user: UserRow, session: SessionRow) -> None:
    """The organization's address ranges bind here as they bind the API. Raises `Fault`."""
    policy = await host.ports.policies.current(user.tenant_id)
    if policy.ip_allowlist is None or request.scope["state"]["client_address"] in policy.ip_allowlist:
        return
    if policy.ip_bypass_for_mfa and session.mfa_at is not None:
        async with host.database.tenant(user.tenant_id) as reading:
            fresh_for = timedelta(seconds=(await mfa_policy(reading)).mfa_assertion_ttl_seconds)
        if utc_now() - session.mfa_at <= fresh_for:
            return
    raise Fault("access_denied", "The person's address is not in their organization's allowlist.")


def _sign_in_first(asked: Asked, host: Host) -> RedirectResponse:
    if "none" in asked.prompts:
        raise Fault("login_required", "The person is not signed in, or not recently enough.")
    now = int(host.clock.now() * 1000)
    there = {"next": asked.again(host.cursors.issue(now, {}, context=_CONTEXT))}
    if "login_hint" in asked.fields:
        there["email"] = asked.fields["login_hint"]
    return RedirectResponse(f"/login?{urlencode(there)}", 303)


def _recent(asked: Asked, session: SessionRow, host: Host) -> bool:
    """Whether this session is as fresh as the application wants it."""
    now, opened = host.clock.now() * 1000, session.created_at.timestamp() * 1000
    again = bool(asked.prompts & {"login", "select_account"})
    if not again and (asked.max_age is None or now - opened <= asked.max_age * 1000):
        return True
    # Signed in since the application asked: a second time would tell no more.
    try:
        asked_at, _ = host.cursors.read(asked.fields.get("asked_at", ""), context=_CONTEXT)
    except BadCursor:
        return False
    return now - asked_at <= _PATIENCE_MS and opened >= asked_at
