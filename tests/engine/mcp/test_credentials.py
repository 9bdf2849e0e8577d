"""Access tokens for MCP servers: shared, renewed, bound to their server (docs/mcp.md)."""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest
from tests.support.engine import TENANT, EngineHarness
from tests.support.mcp_engine import server_record

from gatehouse.engine.mcp.credentials import UpstreamCredentials
from gatehouse.engine.mcp.upstream import UpstreamFailed, request
from gatehouse.engine.ports import UserToken
from gatehouse.engine.providers.authentication.renewal import RENEW_BEFORE_EXPIRY_SECONDS
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound import OutboundReply, OutboundRequest
from gatehouse.policy.mcp import McpOAuthRecord, McpServerRecord, McpUserOAuthRecord

RESULT = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode()
CLIENT = McpOAuthRecord(token_url="https://login.test/token", client_id="gate", sealed_secret="sealed")


class Site:
    """A token endpoint and MCP servers, with a clock that the test sets."""

    def __init__(self) -> None:
        self.harness = EngineHarness()
        self.seconds = 1_000_000.0
        self.issued = 0
        self.refused = False
        self.lifetime = 3_600
        self.credentials = UpstreamCredentials(now=lambda: self.seconds)
        self.harness.ports.outbound = self  # type: ignore[assignment]
        self.harness.ports.secrets = self  # type: ignore[assignment]
        self.sent: list[tuple[str, str | None]] = []
        self.token_requests: list[OutboundRequest] = []

    def open(self, tenant_id: TenantId, key: str, sealed: str | None) -> dict[str, str]:
        return {} if sealed is None else {"client_secret": f"{sealed} {key}"}

    async def send(self, outgoing: OutboundRequest) -> OutboundReply:
        await asyncio.sleep(0)
        outbound = self.harness.outbound
        if outgoing.url == CLIENT.token_url:
            self.token_requests.append(outgoing)
            self.issued += 1
            token = {"access_token": f"token-{self.issued}", "expires_in": self.lifetime}
            outbound.script = [(401, [b"{}"]) if self.refused else (200, [json.dumps(token).encode()])]
        else:
            self.sent.append((outgoing.url, outgoing.headers.get("Authorization")))
            outbound.script = [(200, [RESULT])]
        return await outbound.send(outgoing)

    async def close(self) -> None: ...

    async def ask(self, server: McpServerRecord, tenant_id: TenantId = TENANT) -> str | None:
        """Send a request to a server. Returns its credential."""
        await request(self.credentials.target(self.harness.ports, tenant_id, server, None), "ping", {})
        return self.sent[-1][1]


async def reason(site: Site, server: Any) -> str:
    try:
        await site.ask(server)
    except UpstreamFailed as failed:
        return failed.reason
    return ""


async def test_concurrent_requests_share_one_token_and_later_ones_reuse_it() -> None:
    site, server = Site(), server_record("mail", oauth=CLIENT)
    assert await asyncio.gather(*(site.ask(server) for _ in range(10))) == ["Bearer token-1"] * 10
    site.seconds += 600
    assert await site.ask(server) == "Bearer token-1"
    assert site.issued == 1


async def test_a_token_is_renewed_in_the_background_before_it_expires() -> None:
    site, server = Site(), server_record("mail", oauth=CLIENT)
    await site.ask(server)
    site.seconds += 3_600 - RENEW_BEFORE_EXPIRY_SECONDS + 1
    assert await site.ask(server) == "Bearer token-1"
    await asyncio.sleep(0.01)
    assert await site.ask(server) == "Bearer token-2"


async def test_a_token_is_bound_to_organization_server_address_and_secret() -> None:
    site, server = Site(), server_record("mail", oauth=CLIENT)
    replaced = server_record("mail", oauth=McpOAuthRecord(**{**_fields(CLIENT), "sealed_secret": "other"}))
    others = (server_record("mail", oauth=CLIENT), replaced, _moved(server))
    assert await site.ask(server) == "Bearer token-1"
    assert await site.ask(server, TenantId(new_id())) == "Bearer token-2"
    assert [await site.ask(other) for other in others] == ["Bearer token-3", "Bearer token-4", "Bearer token-5"]
    assert await site.ask(server) == "Bearer token-1"


async def test_the_token_request_is_sent_under_the_egress_policy_and_names_the_server() -> None:
    site, server = Site(), server_record("mail", oauth=CLIENT, egress_policy="public")
    await site.ask(server)
    (sent,) = site.token_requests
    assert (sent.egress, sent.body) == (
        "public", b"grant_type=client_credentials&resource=https%3A%2F%2Fmail.test%2Fmcp",
    )  # fmt: skip
    site = Site()
    await site.ask(server_record("mail", oauth=CLIENT))
    assert site.token_requests[0].egress == "private"


async def test_without_a_token_nothing_is_sent() -> None:
    site, server = Site(), server_record("mail", oauth=CLIENT)
    site.refused = True
    assert await reason(site, server) == "client_refused"
    # The endpoint is not asked again at once.
    assert (await reason(site, server), site.issued) == ("client_refused", 1)
    site = Site()
    site.lifetime = 20
    assert await reason(site, server) == "no_access_token"
    assert site.sent == []


class AccountTokens:
    """Implements `UserTokens`: a user whose connection a test changes."""

    def __init__(self) -> None:
        self.value = "token"
        self.connection_id = new_id()

    async def get(self, tenant_id: TenantId, user_id: UUID, server: McpServerRecord) -> UserToken:
        return self

    def is_current(self) -> bool:
        return True

    def refuse(self) -> None: ...


async def test_a_session_is_not_sent_with_the_token_of_a_connection_that_was_made_meanwhile() -> None:
    site, server = Site(), server_record("mail", user_oauth=McpUserOAuthRecord(client_id="gate"))
    site.harness.ports.user_tokens = tokens = AccountTokens()
    user_id, first = new_id(), tokens.connection_id
    target = site.credentials.target(site.harness.ports, TENANT, server, user_id, connection_id=first)
    await request(target, "ping", {}, session_id="s")
    tokens.connection_id = new_id()
    with pytest.raises(UpstreamFailed) as failed:
        await request(target, "ping", {}, session_id="s")
    assert failed.value.reason == "session_ended"
    assert len(site.sent) == 1
    # Another session can begin.
    await request(target, "initialize", {})
    assert [credential for _, credential in site.sent] == ["Bearer token"] * 2


def _fields(record: McpOAuthRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def _moved(server: McpServerRecord) -> McpServerRecord:
    fields = {name: getattr(server, name) for name in server.__struct_fields__}
    return McpServerRecord(**{**fields, "url": "https://other.test/mcp"})
