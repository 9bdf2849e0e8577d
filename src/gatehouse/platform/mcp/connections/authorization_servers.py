"""Requests to the authorization servers of MCP servers: metadata (RFC 8414), tokens (RFC 6749, RFC 7636, RFC 8707) and
their revocation (RFC 7009). Answers have a maximum size and duration, redirects are not followed, and the egress guard
checks every address.

The administrator names the authorization server. The metadata of the MCP server (RFC 9728) are not used, because the
MCP server could then choose who gets the client's secret and the users' codes (RFC 9700, 4.4).
"""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from gatehouse.engine.mcp.credentials import authenticate_client
from gatehouse.engine.providers.authentication.renewal import MIN_LIFETIME_SECONDS, NotAvailable
from gatehouse.engine.providers.authentication.tokens import checked_token, decoded
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.egress.guard import EgressGuard, UnsafeUrl
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundRequest
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.settings import EgressPolicy, stricter
from gatehouse.platform.live.ports import sealing_context
from gatehouse.platform.mcp.connections.errors import ConsentRefused
from gatehouse.platform.mcp.connections.table import StoredTokens
from gatehouse.policy.mcp import McpServerRecord, McpUserOAuthRecord, mcp_client_key

T = TypeVar("T")

#: `again`: the authorization server did not answer, or asks to send the request later
Revocation: TypeAlias = Literal["done", "again", "refused"]

#: Timeout of one request to an authorization server.
REQUEST_TIMEOUT_SECONDS: Final = 4.0
_MAX_ANSWER_BYTES: Final = 64 * 1024
_MAX_SCOPE_CHARACTERS: Final = 4_000
#: Tokens are renewed when a fifth of their lifetime is left, but at most this long before they expire.
_MAX_RENEWAL_SECONDS: Final = 300.0
_MIN_RENEWAL_SECONDS: Final = MIN_LIFETIME_SECONDS + 15.0
_MAX_LIFETIME_SECONDS: Final = 10 * 365 * 86_400.0
_SERVER_METADATA: Final = "/.well-known/oauth-authorization-server"
_OPENID_METADATA: Final = "/.well-known/openid-configuration"
_S256: Final = "S256"


class ConsentTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a user consents to: the address of the MCP server, the gateway's client, and the endpoints."""

    server_url: str
    client_id: str
    authorization_url: str
    token_url: str
    revocation_url: str | None = None
    issuer: str | None = None
    #: whether the authorization server names itself in its answer (RFC 9207)
    sends_issuer: bool = False


class IssuedTokens(msgspec.Struct, frozen=True):
    """Tokens that an authorization server has issued. A token without a known end has no `expires_at`."""

    tokens: StoredTokens
    scope: str | None
    expires_at: datetime | None
    renew_at: datetime | None


class GrantRefused(Exception):
    """The authorization server refuses to issue tokens. `is_final` is true if the user must consent again."""

    def __init__(self, *, is_final: bool) -> None:
        super().__init__("refused")
        self.is_final = is_final


class _ServerMetadata(msgspec.Struct):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str | None = None
    code_challenge_methods_supported: list[str] = []
    authorization_response_iss_parameter_supported: bool = False


class _TokenAnswer(msgspec.Struct):
    access_token: str
    token_type: str = "bearer"  # noqa: S105 - a type
    expires_in: float | None = None
    refresh_token: str | None = None
    scope: str | None = None


class _ErrorAnswer(msgspec.Struct):
    error: Any = None


_server_metadata: Final = msgspec.json.Decoder(_ServerMetadata)
# Some servers send numbers as texts.
_token_answer: Final = msgspec.json.Decoder(_TokenAnswer, strict=False)
_error_answer: Final = msgspec.json.Decoder(_ErrorAnswer)


class AuthorizationServers:
    """Sends requests to authorization servers. `guard` checks the addresses that their metadata contain."""

    def __init__(self, outbound: Outbound, guard: EgressGuard) -> None:
        self._outbound = outbound
        self._guard = guard

    async def terms(self, server: McpServerRecord, oauth: McpUserOAuthRecord) -> ConsentTerms:
        """Return the present terms of a consent. Reads the metadata, unless the endpoints are configured. Raises
        `ConsentRefused`."""
        if oauth.authorization_url is not None and oauth.token_url is not None:
            return ConsentTerms(
                server_url=server.url, client_id=oauth.client_id, authorization_url=oauth.authorization_url,
                token_url=oauth.token_url, revocation_url=oauth.revocation_url, issuer=oauth.issuer,
                sends_issuer=oauth.issuer is not None,
            )  # fmt: skip
        if (issuer := oauth.issuer) is None:
            raise ConsentRefused("no_issuer")
        metadata = await self._metadata_of(server, issuer)
        if _S256 not in metadata.code_challenge_methods_supported:
            raise ConsentRefused("no_pkce")
        endpoints = [metadata.authorization_endpoint, metadata.token_endpoint]
        if metadata.revocation_endpoint is not None:
            endpoints.append(metadata.revocation_endpoint)
        for url in endpoints:
            self._require_permitted(url, server)
        return ConsentTerms(
            server_url=server.url, client_id=oauth.client_id, authorization_url=metadata.authorization_endpoint,
            token_url=metadata.token_endpoint, revocation_url=metadata.revocation_endpoint, issuer=issuer,
            sends_issuer=metadata.authorization_response_iss_parameter_supported,
        )  # fmt: skip

    async def exchange(
        self,
        server: McpServerRecord,
        oauth: McpUserOAuthRecord,
        secret: str | None,
        terms: ConsentTerms,
        form: dict[str, str],
    ) -> IssuedTokens:
        """Exchange an authorization code for tokens. `form` has the code, the PKCE verifier and the redirect URI.
        Raises `GrantRefused`, `NotAvailable`, `OutboundFailed`."""
        form = {"grant_type": "authorization_code", **form}
        return await self._tokens(server, oauth, secret, terms.token_url, form)

    async def renew(
        self, server: McpServerRecord, oauth: McpUserOAuthRecord, secret: str | None, token_url: str, refresh_token: str
    ) -> IssuedTokens:
        """Exchange a refresh token for new tokens. If the answer has no refresh token, the former one stays valid.
        Raises `GrantRefused`, `NotAvailable`, `OutboundFailed`."""
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        issued = await self._tokens(server, oauth, secret, token_url, form)
        if issued.tokens.refresh_token is not None:
            return issued
        return msgspec.structs.replace(issued, tokens=StoredTokens(issued.tokens.access_token, refresh_token))

    async def revoke(
        self, server: McpServerRecord, oauth: McpUserOAuthRecord, secret: str | None, url: str, tokens: StoredTokens
    ) -> Revocation:
        """Revoke the tokens of a user, and return the result for all of them. An authorization server need not revoke
        the access token with the refresh token, so both are sent."""
        for value, kind in ((tokens.refresh_token, "refresh_token"), (tokens.access_token, "access_token")):
            if value is None:
                continue
            form = {"token": value, "token_type_hint": kind}
            try:
                status, body = await self._post(server, oauth, secret, url, form)
            except OutboundFailed:
                return "again"
            if status == 429 or status >= 500:
                return "again"
            # A server need not be able to revoke both kinds.
            if status != 200 and _error_of(body) != "unsupported_token_type":
                return "refused"
        return "done"

    async def _tokens(
        self, server: McpServerRecord, oauth: McpUserOAuthRecord, secret: str | None, url: str, form: dict[str, str]
    ) -> IssuedTokens:
        if oauth.sends_resource:
            form["resource"] = server.url
        status, body = await self._post(server, oauth, secret, url, form)
        if status != 200:
            if not 400 <= status < 500 or status == 429:
                raise NotAvailable(f"the token endpoint answers with status {status}")
            raise GrantRefused(is_final=_error_of(body) == "invalid_grant")
        return _issued(decoded(_token_answer, body))

    async def _post(
        self, server: McpServerRecord, oauth: McpUserOAuthRecord, secret: str | None, url: str, form: dict[str, str]
    ) -> tuple[int, bytes]:
        headers = authenticate_client(oauth, secret, form)
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        return await self._send("POST", url, headers, urlencode(form).encode(), server)

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, server: McpServerRecord
    ) -> tuple[int, bytes]:
        limit = REQUEST_TIMEOUT_SECONDS
        request = OutboundRequest(
            method=method, url=url, headers=headers, body=body, connect_timeout=limit, first_byte_timeout=limit,
            idle_timeout=limit, total_timeout=limit, egress=_bounds(url, server),
        )  # fmt: skip
        reply = await self._outbound.send(request)
        try:
            return reply.status, await reply.read(_MAX_ANSWER_BYTES)
        finally:
            await reply.close()

    async def _metadata_of(self, server: McpServerRecord, issuer: str) -> _ServerMetadata:
        for url in _metadata_urls(issuer):
            self._require_permitted(url, server)
            metadata = await self._document(url, _server_metadata, server)
            # RFC 8414, 3.3: otherwise another authorization server could pretend to be this one.
            if metadata is not None and metadata.issuer == issuer:
                return metadata
        raise ConsentRefused("no_metadata")

    async def _document(self, url: str, decoder: "msgspec.json.Decoder[T]", server: McpServerRecord) -> T | None:
        try:
            status, body = await self._send("GET", url, {"Accept": "application/json"}, b"", server)
            return decoded(decoder, body) if status == 200 else None
        except (OutboundFailed, NotAvailable):
            return None

    def _require_permitted(self, url: str, server: McpServerRecord) -> None:
        bounds = _bounds(url, server)
        try:
            self._guard.provider_url(url, bounds)
        except UnsafeUrl:
            raise ConsentRefused("no_metadata") from None
        if "#" in url or (bounds != (server.egress_policy or "private") and not url.startswith("https://")):
            raise ConsentRefused("no_metadata")


def _bounds(url: str, server: McpServerRecord) -> EgressPolicy:
    """Return the egress policy for an address. A host that only metadata name must be public, because the metadata can
    be chosen by somebody else than the organization."""
    own = server.egress_policy or "private"
    oauth = server.user_oauth
    configured: list[str | None] = [server.url]
    if oauth is not None:
        configured += [oauth.issuer, oauth.authorization_url, oauth.token_url, oauth.revocation_url]
    hosts = {urlsplit(address).hostname for address in configured if address is not None}
    return own if urlsplit(url).hostname in hosts else stricter(own, "public")


def client_secret(
    sealer: Sealer, tenant_id: TenantId, server: McpServerRecord, oauth: McpUserOAuthRecord
) -> str | None:
    """Return the secret of the gateway's client; None for a public client. Raises `NotAvailable`."""
    if oauth.sealed_secret is None:
        return None
    try:
        opened = sealer.open(oauth.sealed_secret, context=sealing_context(tenant_id, mcp_client_key(server.id)))
    except CannotOpen:
        raise NotAvailable("the client's secret cannot be opened") from None
    return msgspec.json.decode(opened, type=dict[str, str])["client_secret"]


def _metadata_urls(issuer: str) -> Iterator[str]:
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield origin + _SERVER_METADATA + path
    yield origin + _OPENID_METADATA + path
    if path:
        yield origin + path + _OPENID_METADATA


def _error_of(body: bytes) -> str | None:
    try:
        error = _error_answer.decode(body).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return error if isinstance(error, str) else None


def _issued(answer: _TokenAnswer) -> IssuedTokens:
    """Raises `NotAvailable`."""
    checked_token(answer.access_token, 0)
    if answer.refresh_token is not None:
        checked_token(answer.refresh_token, 0)
    if answer.token_type.lower() != "bearer":
        raise NotAvailable("the token is not a bearer token")
    scope = None if answer.scope is None else answer.scope[:_MAX_SCOPE_CHARACTERS].replace("\0", "")
    tokens = StoredTokens(answer.access_token, answer.refresh_token)
    if answer.expires_in is None or not math.isfinite(answer.expires_in):
        return IssuedTokens(tokens, scope, None, None)
    lifetime = min(max(answer.expires_in, 0.0), _MAX_LIFETIME_SECONDS)
    expires_at = utc_now() + timedelta(seconds=lifetime)
    early = max(min(lifetime / 5, _MAX_RENEWAL_SECONDS), _MIN_RENEWAL_SECONDS)
    return IssuedTokens(tokens, scope, expires_at, expires_at - timedelta(seconds=early))
