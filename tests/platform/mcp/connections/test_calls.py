"""Calls with the tokens of users (docs/mcp.md)."""

from mcp import UrlElicitationRequiredError
from mcp.types import ErrorData
from tests.platform.mcp.connections.conftest import Browser
from tests.support.mcp_accounts import OWN, AccountServer, connect, registered
from tests.support.mcp_servers import call, recorded, send_older
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
