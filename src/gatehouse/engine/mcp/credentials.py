"""The gateway's credentials at MCP servers: none, a static header, the access token of an OAuth client or of the user
who calls, or the variables of a process."""

import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol
from urllib.parse import quote
from uuid import UUID

import msgspec

from gatehouse.engine.mcp.errors import AccountsElsewhere, McpUserRequired, StdioOff
from gatehouse.engine.mcp.upstream import SESSION_ID, Target, UpstreamFailed
from gatehouse.engine.ports import Ports, Secrets, StdioServers, UserToken, UserTokens
from gatehouse.engine.providers.authentication.tokens import AccessToken, TokenCache, fetch_token
from gatehouse.engine.providers.failure import NO_ACCESS_TOKEN
from gatehouse.engine.stages.candidates.sending import OutOfTouch
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound import Outbound, OutboundReply, OutboundRequest
from gatehouse.policy.mcp import (
    McpOAuthRecord,
    McpServerRecord,
    McpUserOAuthRecord,
    mcp_client_key,
    mcp_environment_key,
)

_SECRET: Final = "client_secret"  # noqa: S105 - the name of a field


class UpstreamPorts(Protocol):
    """The ports that requests to MCP servers need."""

    @property
    def outbound(self) -> Outbound: ...
    @property
    def secrets(self) -> Secrets: ...
    @property
    def stdio(self) -> StdioServers | None: ...
    @property
    def user_tokens(self) -> UserTokens | None: ...


class UpstreamCredentials:
    """The access tokens of one worker. A token is used for one server of one organization only."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._tokens = TokenCache("mcp", NO_ACCESS_TOKEN, now)

    def target(
        self,
        ports: UpstreamPorts,
        tenant_id: TenantId,
        server: McpServerRecord,
        user_id: UUID | None,
        *,
        gate: Callable[[], None] | None = None,
        owner: bytes = b"",
        connection_id: UUID | None = None,
    ) -> Target:
        """Return the server as a target of requests, with the gateway's credential. `user_id` is the user for whom
        requests are sent, or None. `owner` identifies the caller, because a process may serve one caller only.
        `connection_id` is the user's connection to which sessions belong. Raises `McpUserRequired`, and the refusal of
        `refusal_of_host`."""
        if (refusal := refusal_of_host(ports, tenant_id, server)) is not None:
            raise refusal
        if server.stdio is not None:
            assert ports.stdio is not None
            values = ports.secrets.open(tenant_id, mcp_environment_key(server.id), server.stdio.sealed_environment)
            process = ports.stdio.outbound(tenant_id, server, values, owner)
            return Target(record=server, revision=server.revision, header={}, outbound=process, gate=gate)
        header = ports.secrets.open(tenant_id, server.secret_key, server.sealed_header)
        outbound: Outbound = ports.outbound
        oauth = server.oauth
        if oauth is not None:
            secret = ports.secrets.open(tenant_id, mcp_client_key(server.id), oauth.sealed_secret)[_SECRET]
            load = partial(_fetched, ports.outbound, server, oauth, secret, self._now)
            # `oauth` includes the sealed secret, so that a token is not used after its secret was replaced.
            outbound = self._tokens.bearer(outbound, (tenant_id, server.id, server.url, oauth), load, server.name)
        if server.user_oauth is not None:
            tokens, user = _user(ports, user_id)
            outbound = UserBearer(outbound, partial(tokens.get, tenant_id, user, server), connection_id)
        return Target(
            record=server, revision=server.revision, header=header, outbound=outbound, gate=gate,
            connection_id=connection_id,
        )  # fmt: skip


def refusal_of_host(ports: UpstreamPorts, tenant_id: TenantId, server: McpServerRecord) -> Refusal | None:
    """Return the refusal of all calls to a server that this host cannot call, or None."""
    if server.user_oauth is not None and ports.user_tokens is None:
        return AccountsElsewhere()
    if server.stdio is not None and (ports.stdio is None or not ports.stdio.offers(tenant_id, server)):
        return StdioOff()
    return None


async def require_connection(
    ports: Ports, tenant_id: TenantId, user_id: UUID | None, server: McpServerRecord
) -> UUID | None:
    """Check that the user has connected an account if the server needs one, and return the id of the connection. None
    if the server needs none. Raises `AccountsElsewhere`, `McpConnectionRequired`, `McpUserRequired`, `Unavailable`."""
    if server.user_oauth is None:
        return None
    user_tokens, user = _user(ports, user_id)
    return (await user_tokens.get(tenant_id, user, server)).connection_id


def _user(ports: UpstreamPorts, user_id: UUID | None) -> tuple[UserTokens, UUID]:
    if ports.user_tokens is None:
        raise AccountsElsewhere
    if user_id is None:
        raise McpUserRequired
    return ports.user_tokens, user_id


class UserBearer:
    """An `Outbound` that sends a user's access token. Sessions in requests belong to the connection `connection_id`.
    `send` also raises `McpConnectionRequired`, `Unavailable`, `OutOfTouch` if the token was removed while the call
    waited, and `UpstreamFailed` if the user has connected again: a session is sent with tokens of its connection
    only."""

    def __init__(
        self, outbound: Outbound, token: Callable[[], Awaitable[UserToken]], connection_id: UUID | None
    ) -> None:
        self._outbound = outbound
        self._token = token
        self._connection_id = connection_id

    async def send(self, request: OutboundRequest) -> OutboundReply:
        token = await self._token()
        if SESSION_ID in request.headers and self._connection_id not in (None, token.connection_id):
            raise UpstreamFailed("session_ended")

        def gate() -> None:
            if not token.is_current():
                raise OutOfTouch
            if request.before_first_byte is not None:
                request.before_first_byte()

        headers = {**request.headers, "Authorization": f"Bearer {token.value}"}
        reply = await self._outbound.send(msgspec.structs.replace(request, headers=headers, before_first_byte=gate))
        if reply.status == 401:
            token.refuse()
        return reply

    async def close(self) -> None:
        """Do nothing: the wrapped `Outbound` is shared."""


async def _fetched(
    outbound: Outbound, server: McpServerRecord, oauth: McpOAuthRecord, secret: str, now: Callable[[], float]
) -> AccessToken:
    """Fetch a token by the grant of client credentials (RFC 6749, 4.4). Raises `NotAvailable` and `OutboundFailed`."""
    form = {"grant_type": "client_credentials"}
    if oauth.scope:
        form["scope"] = oauth.scope
    if oauth.sends_resource:
        # The token is valid for this server only, if the token endpoint knows resource indicators (RFC 8707).
        form["resource"] = server.url
    headers = authenticate_client(oauth, secret, form)
    egress = server.egress_policy or "private"
    return await fetch_token(outbound, oauth.token_url, form, now, headers=headers, egress=egress)


def authenticate_client(
    oauth: McpOAuthRecord | McpUserOAuthRecord, secret: str | None, form: dict[str, str]
) -> dict[str, str]:
    """Authenticate the gateway in a request to an authorization server (RFC 6749, 2.3): add fields to `form`, or return
    headers. `secret` is None for a public client."""
    if secret is not None and oauth.client_authentication == "client_secret_basic":
        pair = f"{quote(oauth.client_id, safe='')}:{quote(secret, safe='')}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    form["client_id"] = oauth.client_id
    if secret is not None:
        form[_SECRET] = secret
    return {}
