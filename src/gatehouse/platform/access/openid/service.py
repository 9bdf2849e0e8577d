"""Processes authorization requests: redirects signed-in users to the application with a code."""

from datetime import timedelta
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import RedirectResponse

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import NotFound, Unauthenticated
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.lists import BadCursor
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access import browser
from gatehouse.platform.access.oauth_clients.redirects import origin
from gatehouse.platform.access.openid import authorization, table
from gatehouse.platform.access.openid.authorization import (
    AuthorizationError,
    AuthorizationRequest,
    BadAuthorizationRequest,
)
from gatehouse.platform.access.sessions.service import as_caller
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.access.tokens import claims, codes
from gatehouse.platform.access.tokens import table as clients
from gatehouse.platform.access.tokens.table import Client
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.organization.policies.table import mfa_policy
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host

#: Maximum time from an authorization request to the end of the sign-in that it required.
_SIGN_IN_TIMEOUT_MILLISECONDS: Final = 30 * 60 * 1000
_CURSOR_CONTEXT: Final = "openid asked_at"


class NoPublicAddress(NotFound):
    code = "no_public_url"
    message = "Signing in to other applications is not set up here. The operator of this service has to set PUBLIC_URL."


class BadAccessToken(Unauthenticated):
    code = "invalid_token"
    message = "The access token is not valid, has expired, or its session has ended."

    def __init__(self) -> None:
        super().__init__(headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})


def issuer(host: Host) -> str:
    """Return the issuer. Raises `NoPublicAddress`, because applications must be able to resolve the issuer."""
    if host.settings.public_url is None:
        raise NoPublicAddress
    return host.issuer


async def authorize(request: Request, host: Host) -> RedirectResponse:
    """Redirect to the application with a code, or to the sign-in page. Raises `BadAuthorizationRequest`,
    `NoPublicAddress`; the redirect reports every other error to the application."""
    name = issuer(host)
    auth_request = AuthorizationRequest.parse(request.scope["query_string"].decode("ascii", "replace"))
    client = await client_of_request(host, auth_request)
    if client is None:
        raise BadAuthorizationRequest
    try:
        auth_request.check()
        browser_session = await browser.current_session(request, host)
        if browser_session is not None and not _is_recent(auth_request, browser_session[1], host):
            browser_session = None
        code = None
        if browser_session is not None:
            code = await _issue_code(request, host, client, auth_request, browser_session)
        return _sign_in_first(auth_request, host) if code is None else auth_request.response(name, code=code)
    except AuthorizationError as error:
        return auth_request.response(name, error=error.error, error_description=error.description)


async def redirect_to_query(request: Request) -> RedirectResponse:
    """Redirect a request in a form to the same request in a query. Raises `BadAuthorizationRequest`."""
    if not forms.is_form(request.headers.get("content-type", "")):
        raise BadAuthorizationRequest
    return RedirectResponse(authorization.url_of_form(await request.body()), 303)


async def client_of_request(host: Host, auth_request: AuthorizationRequest) -> Client | None:
    """Return the request's client if it signs users in and has registered the redirect URI."""
    async with host.database.service() as session:
        client = await clients.find_client(session, auth_request.client_id)
    if client is None or not client.can_sign_users_in or auth_request.redirect_uri not in client.redirect_uris:
        return None
    return client


async def destination(host: Host, path: str) -> tuple[str | None, str | None]:
    """Return name and origin of the application that the sign-in page's `next` path leads to; two Nones for any other
    path."""
    auth_request = authorization.request_of_path(path)
    client = await client_of_request(host, auth_request) if auth_request is not None else None
    return (None, None) if client is None or auth_request is None else (client.name, origin(auth_request.redirect_uri))


async def userinfo(host: Host, token: str | None) -> dict[str, object]:
    """Return the claims of the access token's user. Raises `BadAccessToken`."""
    if token is None:
        raise BadAccessToken
    async with host.database.service() as lookup:
        access_grant = await table.by_access_token(lookup, tokens.digest(token))
    if access_grant is None:
        raise BadAccessToken
    async with host.database.tenant(access_grant.tenant_id) as session:
        user = await _active_user(session, access_grant.user_id, access_grant.session_id)
        return await claims.claims_for(session, user, access_grant.scope.split())


async def _active_user(session: AsyncSession, user_id: UUID, session_id: UUID) -> UserRow:
    user, session_row = await session.get(UserRow, user_id), await session.get(SessionRow, session_id)
    if user is None or session_row is None or not user.is_active or not session_row.open():
        raise BadAccessToken
    return user


async def _issue_code(
    request: Request,
    host: Host,
    client: Client,
    auth_request: AuthorizationRequest,
    signed_in: tuple[UserRow, SessionRow],
) -> str | None:
    """Issue a code; None if the session has ended meanwhile. Raises `AuthorizationError`."""
    (user, browser_session), grant = signed_in, auth_request.grant(client)
    if not client.is_for(user.tenant_id):
        raise AuthorizationError("access_denied", "The application belongs to another organization.")
    await _check_client_address(request, host, user, browser_session)
    async with changing(request, host, user.tenant_id, as_caller(user, browser_session)) as change:
        session = await browser.extend_session(change, browser_session.id)
        if session is None:
            return None
        code = codes.issue(change, session, grant)
        change.record("oauth_code.issued", "oauth_client", grant.client_id, scope=grant.scope, session_id=session.id)
    return code


async def _check_client_address(request: Request, host: Host, user: UserRow, session: SessionRow) -> None:
    """Apply the organization's IP allowlist as the API does. Raises `AuthorizationError`."""
    policy = await host.ports.policies.current(user.tenant_id)
    if policy.ip_allowlist is None or request.scope["state"]["client_address"] in policy.ip_allowlist:
        return
    if policy.ip_bypass_for_mfa and session.mfa_at is not None:
        async with host.database.tenant(user.tenant_id) as reading:
            fresh_for = timedelta(seconds=(await mfa_policy(reading)).mfa_assertion_ttl_seconds)
        if utc_now() - session.mfa_at <= fresh_for:
            return
    raise AuthorizationError("access_denied", "The IP address is not in the allowlist of the user's organization.")


def _sign_in_first(auth_request: AuthorizationRequest, host: Host) -> RedirectResponse:
    if "none" in auth_request.prompts:
        raise AuthorizationError("login_required", "The person is not signed in, or not recently enough.")
    now = int(host.clock.now() * 1000)
    query = {"next": auth_request.retry_url(host.cursors.issue(now, {}, context=_CURSOR_CONTEXT))}
    if "login_hint" in auth_request.fields:
        query["email"] = auth_request.fields["login_hint"]
    return RedirectResponse(f"/login?{urlencode(query)}", 303)


def _is_recent(auth_request: AuthorizationRequest, session: SessionRow, host: Host) -> bool:
    """Return whether the session is as fresh as the application requires."""
    now, opened_at = host.clock.now() * 1000, session.created_at.timestamp() * 1000
    sign_in_required = bool(auth_request.prompts & {"login", "select_account"})
    if not sign_in_required and (auth_request.max_age is None or now - opened_at <= auth_request.max_age * 1000):
        return True
    # A sign-in after the first authorization request is recent enough for both parameters.
    try:
        requested_at, _ = host.cursors.read(auth_request.fields.get("asked_at", ""), context=_CURSOR_CONTEXT)
    except BadCursor:
        return False
    return now - requested_at <= _SIGN_IN_TIMEOUT_MILLISECONDS and opened_at >= requested_at
