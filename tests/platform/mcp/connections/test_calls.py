"""Calls with the tokens of users (docs/mcp.md)."""

from typing import Any

import pytest
from aiohttp import web
from mcp import UrlElicitationRequiredError
from mcp.types import ErrorData
from tests.platform.mcp.connections.conftest import Browser
from tests.support.mcp_accounts import OWN, AccountServer, connect, registered
from tests.support.mcp_servers import ScriptedServer, begin_session, call, recorded, send_older
from tests.support.members import member
from tests.support.platform import RunningPlatform, Tenant


async def test_each_user_calls_with_their_own_account(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, browser: Browser
) -> None:
    await registered(platform, tenant, upstream)
    ada, ben = await member(platform, tenant), await member(platform, tenant)
    refused = await call(ada.client, "weather", "echo")
    assert refused.status_code == 403
    assert refused.json()["error"]["data"]["code"] == "mcp_connection_required"
    assert refused.json()["error"]["data"]["url"] == "https://gatehouse.test/connect/weather"
    await connect(upstream, await browser(ada), "ada")
    await connect(upstream, await browser(ben), "ben")
    for who in (ada, ben, ada):
        answer = await call(who.client, "weather", "echo")
        assert answer.status_code == 200, answer.text
    assert upstream.callers == ["ada", "ben", "ada"]
    (listed,) = (await ada.client.get(OWN)).json()["mcp_connections"]
    assert (listed["status"], listed["server"], listed["scope"]) == ("connected", "weather", "tools")


ELICITS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}},
}


async def test_an_agent_that_can_show_a_url_is_first_to_show_it(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, browser: Browser
) -> None:
    await registered(platform, tenant, upstream)
    ada = await member(platform, tenant)
    params = {"name": "echo", "arguments": {}, "_meta": ELICITS}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
    first = await ada.client.post("/mcp/weather", json=body, headers=headers)
    assert first.status_code == 200, first.text
    result = first.json()["result"]
    assert result["resultType"] == "input_required"
    request = result["inputRequests"]["connect"]
    assert (request["method"], request["params"]["mode"]) == ("elicitation/create", "url")
    assert request["params"]["url"] == "https://gatehouse.test/connect/weather"
    # The user has not finished yet: the second request is refused, so that the agent does not ask without end.
    params["inputResponses"] = {"connect": {"action": "accept"}}
    assert (await ada.client.post("/mcp/weather", json=body, headers=headers)).status_code == 403
    await connect(upstream, await browser(ada), "ada")
    done = await ada.client.post("/mcp/weather", json=body, headers=headers)
    assert done.json()["result"]["content"] == [{"type": "text", "text": "done"}]
    outcomes = [event["outcome"] for event in await recorded(platform, tenant)]
    assert sorted(outcomes) == ["refused", "refused", "success"]


async def test_agents_of_the_older_revision_get_the_error_with_the_url(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer
) -> None:
    await registered(platform, tenant, upstream)
    ada = await member(platform, tenant)
    answer = await send_older(ada.client, "weather", "tools/call", {"name": "echo", "arguments": {}})
    error = answer.json()["error"]
    assert error["code"] == -32042
    (elicitation,) = error["data"]["elicitations"]
    assert (elicitation["mode"], elicitation["url"]) == ("url", "https://gatehouse.test/connect/weather")
    UrlElicitationRequiredError.from_error(ErrorData(**error))


class OlderServer:
    """Lets a server have the older revision, with sessions that belong to the account that has begun them."""

    def __init__(self, upstream: AccountServer) -> None:
        self._upstream = upstream
        self._begun = 0
        #: accounts and session ids of the calls
        self.calls: list[tuple[str, str]] = []
        #: the status of the next call, instead of the usual answer
        self.status: int | None = None
        upstream.mcp.respond = self.respond

    async def respond(
        self, server: ScriptedServer, message: dict[str, Any], request: web.Request
    ) -> web.StreamResponse | None:
        account = self._upstream.access[request.headers["Authorization"].removeprefix("Bearer ")]
        match message["method"]:
            case "server/discover":
                return web.Response(status=404)
            case "notifications/initialized":
                return web.Response(status=202)
            case "initialize":
                self._begun += 1
                result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s"}}
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                return web.json_response(answer, headers={"Mcp-Session-Id": f"{account}-{self._begun}"})
            case "tools/call":
                self.calls.append((account, request.headers["Mcp-Session-Id"]))
                status, self.status = self.status, None
                return None if status is None else web.Response(status=status)
        return None

    @property
    def owners(self) -> list[tuple[str, str]]:
        """The accounts of the calls, and those that have begun the sessions."""
        return [(account, session_id.rpartition("-")[0]) for account, session_id in self.calls]


async def test_a_session_is_not_used_with_another_account_of_its_user(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, browser: Browser
) -> None:
    older = OlderServer(upstream)
    server = await registered(platform, tenant, upstream)
    ada = await member(platform, tenant)
    visitor = await browser(ada)
    await connect(upstream, visitor, "first")
    own_session = await begin_session(ada.client, "weather")

    async def call_in_own_session() -> int:
        params = {"name": "echo", "arguments": {}}
        headers = {"Mcp-Session-Id": own_session}
        return (await send_older(ada.client, "weather", "tools/call", params, **headers)).status_code

    for _ in range(2):
        assert (await call(ada.client, "weather", "echo")).status_code == 200
    assert await call_in_own_session() == 200
    assert older.owners == [("first", "first")] * 3
    assert len(set(older.calls)) == 2
    # The second connection follows a removal, the third replaces the second.
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    for account in ("second", "third"):
        older.calls.clear()
        await connect(upstream, visitor, account)
        await platform.refresh()
        for _ in range(2):
            assert (await call(ada.client, "weather", "echo")).status_code == 200
        assert await call_in_own_session() == 404
        assert (await ada.client.delete("/mcp/weather", headers={"Mcp-Session-Id": own_session})).status_code == 404
        assert older.owners == [(account, account)] * 2
        assert len(set(older.calls)) == 1


@pytest.mark.parametrize(("status", "is_forgotten"), [(401, True), (403, False)])
async def test_a_session_at_a_server_that_refuses_the_token_is_forgotten(
    platform: RunningPlatform,
    tenant: Tenant,
    upstream: AccountServer,
    browser: Browser,
    status: int,
    is_forgotten: bool,
) -> None:
    """A 403 concerns one tool, so the session goes on."""
    older = OlderServer(upstream)
    await registered(platform, tenant, upstream)
    ada = await member(platform, tenant)
    await connect(upstream, await browser(ada), "ada")
    assert (await call(ada.client, "weather", "echo")).status_code == 200
    older.status = status
    assert (await call(ada.client, "weather", "echo")).status_code == 502
    assert (await call(ada.client, "weather", "echo")).status_code == 200
    first, refused, last = older.calls
    assert first == refused
    assert (refused != last) is is_forgotten
