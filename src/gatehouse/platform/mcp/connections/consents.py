"""Obtains a user's consent at the authorization server of an MCP server: authorization code with PKCE.

A consent belongs to the browser session in which it began. The callback must come from a browser with this session. So
an attacker can neither connect an account of their own for somebody else, nor obtain the tokens of somebody who follows
a link. `state` is stored as a digest, used once, and expires. The answer must come to the redirect URI of the server
for which the consent began, and name the expected issuer if the authorization server supports this (RFC 9207).
"""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from gatehouse.engine.providers.authentication.renewal import NotAvailable
from gatehouse.engine.stages.callers.ip_allowlist import refused
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.identity import Caller, Role
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound import OutboundFailed
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.secrets.sealing import CannotOpen
from gatehouse.platform.access import browser
from gatehouse.platform.access.sessions.service import as_caller
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.access.users import table as users
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.stored_callers import StoredCaller
from gatehouse.platform.mcp.connections import table
from gatehouse.platform.mcp.connections.authorization_servers import (
    AuthorizationServers,
    ConsentTerms,
    GrantRefused,
    IssuedTokens,
    client_secret,
)
from gatehouse.platform.mcp.connections.errors import ConsentRefused
from gatehouse.platform.mcp.connections.paths import redirect_uri
from gatehouse.platform.mcp.connections.service import callers_of, may_use
from gatehouse.platform.mcp.connections.table import ConnectionRow, ConsentRow, tokens_context, verifier_context
from gatehouse.platform.mcp.servers.table import McpServerRow, by_name
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host
from gatehouse.policy.mcp import McpServerRecord, McpUserOAuthRecord

#: Time within which the user must consent.
CONSENT_LIFETIME: Final = timedelta(minutes=10)
_MAX_PARAMETER_CHARACTERS: Final = 4_096
_VERIFIER_BYTES: Final = 32
#: errors by which an authorization server reports that the user has declined
_DENIED: Final = frozenset({"access_denied"})


class UnknownConnectionPage(NotFound):
    message = "There is no MCP server with this name to which you can connect an account."


class BrowserUser(msgspec.Struct, frozen=True):
    """The user of a browser, and the session to which the browser's cookie belongs. `caller` identifies the user."""

    user: UserRow
    session: SessionRow
    caller: Caller


class OfferedServer(msgspec.Struct, frozen=True):
    """A server to which a user may connect an account. `row` is the present connection, or None."""

    server: McpServerRecord
    oauth: McpUserOAuthRecord
    row: ConnectionRow | None


async def signed_in(request: Request, host: Host) -> BrowserUser | None:
    """Return the user of this browser, or None. Raises `AddressNotAllowed`."""
    browser_session = await browser.current_session(request, host)
    if browser_session is None:
        return None
    user, session = browser_session
    caller = host.credentials.restore(StoredCaller.of(as_caller(user, session)))
    mfa_at = None if session.mfa_at is None else session.mfa_at.timestamp()
    caller = msgspec.structs.replace(caller, mfa_at=mfa_at)
    error = refused(request.state.received, caller, await host.ports.policies.current(user.tenant_id))
    if error is not None:
        raise error
    return BrowserUser(user, session, caller)


async def offer(host: Host, who: BrowserUser, name: str) -> OfferedServer:
    """Return the server with this name. Administrators may connect before a tool is approved, because the tools are
    read with their account. Raises `UnknownConnectionPage`."""
    policy = await host.ports.policies.current(who.user.tenant_id)
    async with host.database.tenant(who.user.tenant_id) as session:
        row = (await session.scalars(by_name().where(McpServerRow.name == name, McpServerRow.enabled))).one_or_none()
        if row is None or row.record.user_oauth is None or host.settings.public_url is None:
            raise UnknownConnectionPage
        connection = await table.connection_of(session, row.id, who.user.id)
        key_ids = await users.key_ids(session, who.user.id)
    server = policy.mcp_servers.get(name)
    is_permitted = server is not None and may_use(server, callers_of(who.caller, key_ids))
    if not is_permitted and who.caller.role is not Role.ADMIN:
        raise UnknownConnectionPage
    return OfferedServer(row.record, row.record.user_oauth, connection)


async def begin(request: Request, host: Host, who: BrowserUser, offered: OfferedServer) -> str:
    """Begin a consent, and return the URL at the authorization server to which the browser is sent. Raises
    `ConsentRefused`."""
    assert host.settings.public_url is not None
    server, oauth = offered.server, offered.oauth
    terms = await _servers(host).terms(server, oauth)
    state, verifier = secrets.token_urlsafe(_VERIFIER_BYTES), secrets.token_urlsafe(_VERIFIER_BYTES)
    async with changing(request, host, who.user.tenant_id, as_caller(who.user, who.session)) as change:
        context = verifier_context(who.user.tenant_id, server.id, who.user.id)
        await table.begin_consent(
            change.session,
            {
                "server_id": server.id, "user_id": who.user.id, "tenant_id": who.user.tenant_id,
                "session_id": who.session.id, "state_digest": tokens.digest(state),
                "terms": msgspec.to_builtins(terms),
                "sealed_verifier": host.sealer.seal(verifier.encode(), context=context),
                "expires_at": utc_now() + CONSENT_LIFETIME,
            },
        )  # fmt: skip
    challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code", "client_id": oauth.client_id, "state": state, "code_challenge": challenge,
        "code_challenge_method": "S256", "redirect_uri": redirect_uri(host.settings.public_url, server.name),
    }  # fmt: skip
    if oauth.scope is not None:
        query["scope"] = oauth.scope
    if oauth.sends_resource:
        query["resource"] = server.url
    separator = "&" if "?" in terms.authorization_url else "?"
    return f"{terms.authorization_url}{separator}{urlencode(query)}"


class ConsentAnswer(msgspec.Struct, frozen=True):
    """A request with the authorization server's answer to a consent."""

    request: Request
    host: Host
    who: BrowserUser
    offered: OfferedServer
    answer: Mapping[str, str]

    def changing(self) -> AbstractAsyncContextManager[Change]:
        user = self.who.user
        return changing(self.request, self.host, user.tenant_id, as_caller(user, self.who.session))


async def finish(x: ConsentAnswer) -> None:
    """Finish a consent, and store the tokens. Raises `ConsentRefused`, after it has recorded the refusal in the audit
    chain."""
    server = x.offered.server
    try:
        await _finish(x)
    except ConsentRefused as error:
        async with x.changing() as change:
            change.record(
                "mcp_connection.failed", "mcp_server", server.id,
                outcome="failure", reason=error.reason, name=server.name,
            )  # fmt: skip
        raise


async def _finish(x: ConsentAnswer) -> None:
    server, oauth = x.offered.server, x.offered.oauth
    consent = await _taken(x)
    terms = msgspec.convert(consent.terms, ConsentTerms)
    if (terms.server_url, terms.client_id) != (server.url, oauth.client_id):
        raise ConsentRefused("server_changed")
    if not _is_from_issuer(x.answer.get("iss"), terms):
        raise ConsentRefused("issuer_mismatch")
    code = x.answer.get("code", "")
    if not code or len(code) > _MAX_PARAMETER_CHARACTERS:
        is_denied = x.answer.get("error") in _DENIED
        raise ConsentRefused("access_denied" if is_denied else "authorization_failed")
    await _store(x, terms, await _exchanged(x, terms, consent, code))


async def _taken(x: ConsentAnswer) -> ConsentRow:
    """Return the consent that this session has begun, and remove it. Raises `ConsentRefused`."""
    consent, user, state = None, x.who.user, x.answer.get("state", "")
    if 0 < len(state) <= _MAX_PARAMETER_CHARACTERS:
        async with x.changing() as change:
            consent = await table.take_consent(
                change.session, user.tenant_id, server_id=x.offered.server.id, user_id=user.id,
                session_id=x.who.session.id, digest=tokens.digest(state),
            )  # fmt: skip
    if consent is None or consent.expires_at <= utc_now():
        raise ConsentRefused("another_session")
    return consent


def _is_from_issuer(issuer: str | None, terms: ConsentTerms) -> bool:
    if issuer is None:
        return not terms.sends_issuer
    return terms.issuer is None or issuer == terms.issuer


async def _exchanged(x: ConsentAnswer, terms: ConsentTerms, consent: ConsentRow, code: str) -> IssuedTokens:
    """Return the tokens for the code. Raises `ConsentRefused`."""
    host, server, oauth, tenant_id = x.host, x.offered.server, x.offered.oauth, x.who.user.tenant_id
    assert host.settings.public_url is not None
    context = verifier_context(tenant_id, server.id, x.who.user.id)
    try:
        form = {
            "code": code,
            "code_verifier": host.sealer.open(consent.sealed_verifier, context=context).decode(),
            "redirect_uri": redirect_uri(host.settings.public_url, server.name),
        }
        secret = client_secret(host.sealer, tenant_id, server, oauth)
        return await _servers(host).exchange(server, oauth, secret, terms, form)
    except GrantRefused:
        raise ConsentRefused("token_refused") from None
    except (CannotOpen, NotAvailable, OutboundFailed):
        raise ConsentRefused("token_unavailable") from None


async def _store(x: ConsentAnswer, terms: ConsentTerms, issued: IssuedTokens) -> None:
    """Store the tokens. They replace those of an earlier connection. If the session has ended, or if the server was
    changed meanwhile, queues the revocation of the tokens, and raises `ConsentRefused`."""
    server, user = x.offered.server, x.who.user
    context, now = tokens_context(user.tenant_id, server.id, user.id), utc_now()
    sealed = x.host.sealer.seal(msgspec.json.encode(issued.tokens), context=context)
    row = ConnectionRow(
        id=new_id(), tenant_id=user.tenant_id, server_id=server.id, user_id=user.id, server_url=terms.server_url,
        client_id=terms.client_id, issuer=terms.issuer, token_url=terms.token_url, revocation_url=terms.revocation_url,
        scope=issued.scope, sealed_tokens=sealed, expires_at=issued.expires_at, renew_at=issued.renew_at,
        created_at=now, updated_at=now,
    )  # fmt: skip
    try:
        async with x.changing() as change:
            await _connect(change, x, row)
    except ConsentRefused:
        async with x.changing() as change:
            await table.queue_revocation(change.session, row, server, sealed)
        raise


async def _connect(change: Change, x: ConsentAnswer, row: ConnectionRow) -> None:
    """Add the connection, and remove an earlier one. Raises `ConsentRefused`."""
    session, server, user = change.session, x.offered.server, x.who.user
    present = await session.get(McpServerRow, server.id, with_for_update={"read": True})
    if present is None or present.record.user_oauth != x.offered.oauth or present.url != server.url:
        raise ConsentRefused("server_changed")
    # Locked, so that a concurrent deactivation of the user, which ends the session, removes the connection too.
    await session.get(UserRow, user.id, with_for_update={"read": True}, populate_existing=True)
    if await browser.extend_session(change, x.who.session.id) is None:
        raise ConsentRefused("another_session")
    former = await table.connection_of(session, server.id, user.id, lock=True)
    if former is not None:
        await table.replace(session, former)
    session.add(row)
    change.record(
        "mcp_connection.created", "mcp_server", server.id, name=server.name, issuer=row.issuer, scope=row.scope
    )
    change.touch("mcp_connection", f"{server.id}/{user.id}", urgent=True)


def _servers(host: Host) -> AuthorizationServers:
    return AuthorizationServers(host.outbound, host.receivers.guard)
