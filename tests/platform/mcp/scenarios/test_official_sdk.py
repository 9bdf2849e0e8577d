"""The client and the server of the official MCP SDK, through the platform (docs/mcp.md)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from tests.support.mcp_servers import grant, register, scripted_server, sdk_server
from tests.support.platform import RunningPlatform, Tenant


@pytest.fixture(scope="module", params=["modern", "sessions", "json"])
def upstream(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    with sdk_server(request.param) as url:
        yield request.param, url


@asynccontextmanager
async def connected(url: str, key: str, mode: str, path: str = "/mcp/weather") -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(url + path, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_an_agent_of_either_revision_calls_a_server_of_either_revision(
    platform: RunningPlatform, tenant: Tenant, upstream: tuple[str, str], mode: str
) -> None:
    variant, url = upstream
    server = await register(tenant, url)
    await grant(tenant, server, tenant.user.id)
    shown = (await tenant.admin.client.get(f"/api/v1/admin/mcp/servers/{server['id']}")).json()
    assert shown["revision"] == ("2026-07-28" if variant == "modern" else "2025-11-25")
    assert shown["server_info"] == {"name": "weather", "version": "3.1"}
    key = await platform.new_key(tenant.user)
    async with platform.listening() as gateway, connected(gateway, key, mode) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["broken", "customer", "document", "forecast", "note"]
        assert listed.tools[3].description == "Returns the forecast for a place."
        answer = await client.call_tool("forecast", {"place": "Oslo", "days": 2})
        assert (answer.is_error, answer.content[0].text) == (False, "Sunny in Oslo for 2 days")
        answer = await client.call_tool("customer", {"number": 1})
        assert answer.structured_content["name"] == "Alice"
        answer = await client.call_tool("broken", {})
        assert answer.is_error
        with pytest.raises(MCPError, match="no tool with this name"):
            await client.call_tool("other", {})


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_an_agent_calls_the_tools_of_all_servers_at_one_path(
    platform: RunningPlatform, tenant: Tenant, upstream: tuple[str, str], mode: str
) -> None:
    async with scripted_server() as scripted:
        for name, url in (("weather", upstream[1]), ("notes", scripted.url)):
            await grant(tenant, await register(tenant, url, name), tenant.user.id)
        key = await platform.new_key(tenant.user)
        async with platform.listening() as gateway, connected(gateway, key, mode, "/mcp") as client:
            listed = await client.list_tools()
            names = [tool.name for tool in listed.tools]
            weather = [f"weather__{name}" for name in ("broken", "customer", "document", "forecast", "note")]
            assert (names, listed.next_cursor) == (["notes__echo", *weather], None)
            answer = await client.call_tool("weather__forecast", {"place": "Oslo", "days": 2})
            assert (answer.is_error, answer.content[0].text) == (False, "Sunny in Oslo for 2 days")
            answer = await client.call_tool("notes__echo", {"text": "a"})
            assert answer.content[0].text == "done"
            with pytest.raises(MCPError, match="no tool with this name"):
                await client.call_tool("forecast", {"place": "Oslo"})
        assert scripted.calls()[0]["name"] == "echo"
