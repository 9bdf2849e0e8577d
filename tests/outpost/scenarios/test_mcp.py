"""MCP servers at an outpost: a platform, an outpost and a server of the official SDK as processes (docs/mcp.md)."""

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.platform.mcp.scenarios.test_guide import blocks
from tests.platform.mcp.scenarios.test_official_sdk import connected
from tests.support.mcp_servers import sdk_server
from tests.support.outpost_mcp import add_server, remove_server, tool_calls, wait_for
from tests.support.outpost_server import OutpostServer, Trust, until, verified
from tests.support.required_programs import needs

CARD = "4111 1111 1111 1111"


@pytest.fixture(scope="module", params=["modern", "sessions"])
def weather(request: pytest.FixtureRequest, trust: Trust, outpost: OutpostServer) -> Iterator[dict[str, Any]]:
    """A server of either revision, which the outpost offers. The organization redacts card numbers."""
    rule = {"detector_name": "cards", "detector_type": "regex", "entity_type": "credit_card", "action_tier": "redact"}
    with sdk_server(request.param) as url, trust.admin() as admin:
        created = admin.post("/api/admin/dlp-rules/", json=rule)
        assert created.status_code == 201, created.text
        server = add_server(trust, "weather", url=url)
        wait_for(outpost, server)
        yield server
        remove_server(trust, server)
        assert admin.delete(f"/api/admin/dlp-rules/{created.json()['id']}").status_code in {200, 204}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("path", ["/mcp/weather", "/mcp"])
async def test_an_agent_of_the_official_sdk_calls_a_server_through_the_outpost(
    trust: Trust, outpost: OutpostServer, weather: dict[str, Any], mode: str, path: str
) -> None:
    before = len(tool_calls(trust, outpost))
    prefix = "weather__" if path == "/mcp" else ""
    async with connected(outpost.url, trust.server.key, mode, path) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == [prefix + name for name in ("broken", "customer", "document", "forecast", "note")]
        answer = await client.call_tool(f"{prefix}forecast", {"place": "Oslo", "days": 2})
        assert (answer.is_error, answer.content[0].text) == (False, "Sunny in Oslo for 2 days")
        # DLP inspects arguments and results.
        answer = await client.call_tool(f"{prefix}forecast", {"place": CARD})
        assert CARD not in answer.content[0].text
        answer = await client.call_tool(f"{prefix}customer", {"number": 1})
        assert (answer.structured_content["name"], CARD in str(answer)) == ("Alice", False)
    until(lambda: len(tool_calls(trust, outpost)) == before + 3)
    first, second, third = tool_calls(trust, outpost)[before:]
    assert [event["outcome"] for event in (first, second, third)] == ["success"] * 3
    assert (first["resource_type"], first["resource_id"]) == ("mcp_server", weather["id"])
    assert [event["details"]["tool"] for event in (first, second, third)] == ["forecast", "forecast", "customer"]
    assert [event["details"]["dlp_action"] for event in (first, second, third)] == ["ALLOW", "REDACT", "REDACT"]
    assert first["details"]["definition_hash"].startswith("sha256:")
    verified(trust)


@needs("jq")
@pytest.mark.usefixtures("weather")
def test_the_commands_of_the_guide(trust: Trust, outpost: OutpostServer) -> None:
    (script,) = blocks("At an outpost")
    variables = {**os.environ, "OUTPOST": outpost.url, "KEY": trust.server.key}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    *names, text = done.stdout.splitlines()
    assert (names[0], text) == ("weather__broken", "Sunny in Oslo for 1 days")
