"""The gateway's credentials at MCP servers: none, a static header, the access token of an OAuth client, or the
variables of a process."""

import time
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import quote

from gatehouse.engine.mcp.errors import StdioOff
from gatehouse.engine.mcp.upstream import Target
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers.authentication.tokens import AccessToken, TokenCache, fetch_token
from gatehouse.engine.providers.failure import NO_ACCESS_TOKEN
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.mcp import McpOAuthRecord, McpServerRecord, mcp_client_key, mcp_environment_key

_SECRET: Final = "client_secret"  # noqa: S105 - the name of a field


class UpstreamCredentials:
    """The access tokens of one worker. A token is used for one server of one organization only."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._tokens = TokenCache("mcp", NO_ACCESS_TOKEN, now)

    def target(
        self,
        ports: Ports,
        tenant_id: TenantId,
        server: McpServerRecord,
        gate: Callable[[], None] | None = None,
        owner: bytes = b"",
    ) -> Target:
        """Return the server as a target of requests, with the gateway's credential. `owner` identifies the caller,
        because a process may serve one caller only. Raises `StdioOff`."""
        if server.stdio is not None:
            if ports.stdio is None:
                raise StdioOff
            values = ports.secrets.open(tenant_id, mcp_environment_key(server.id), server.stdio.sealed_environment)
            process = ports.stdio.outbound(tenant_id, server, values, owner)
            return Target(record=server, revision=server.revision, header={}, outbound=process, gate=gate)
        header = ports.secrets.open(tenant_id, server.secret_key, server.sealed_header)
        outbound: Outbound = ports.outbound
        oauth = server.oauth
        if oauth is not None:
            secret = ports.secrets.open(tenant_id, mcp_client_key(server.id), oauth.sealed_secret)[_SECRET]
            load = partial(_fetched, ports.outbound, server, oauth, secret, self._now)
            # With the sealed secret in the key, a token is not used after its secret was replaced.
            outbound = self._tokens.bearer(outbound, (tenant_id, server.id, server.url, oauth), load, server.name)
        return Target(record=server, revision=server.revision, header=header, outbound=outbound, gate=gate)


async def _fetched(
    outbound: Outbound, server: McpServerRecord, oauth: McpOAuthRecord, secret: str, now: Callable[[], float]
) -> AccessToken:
    """Fetch a token by the grant of client credentials (RFC 6749, 4.4). Raises `NotAvailable` and `OutboundFailed`."""
    form = {"grant_type": "client_credentials"}
    headers: dict[str, str] = {}
    if oauth.scope:
        form["scope"] = oauth.scope
    if oauth.sends_resource:
        # The token is valid for this server only, if the token endpoint knows resource indicators (RFC 8707).
        form["resource"] = server.url
    if oauth.client_authentication == "client_secret_basic":
        pair = f"{quote(oauth.client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    else:
        form |= {"client_id": oauth.client_id, _SECRET: secret}
    egress = server.egress_policy or "private"
    return await fetch_token(outbound, oauth.token_url, form, now, headers=headers, egress=egress)
