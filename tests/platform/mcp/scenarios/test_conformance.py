"""The official conformance suite of the protocol against `/mcp/{server}` (docs/mcp.md)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from aiohttp import web
from tests.support.mcp_servers import ScriptedServer, grant, register, result, scripted_server, tool
from tests.support.npm_packages import CONFORMANCE, install_packages
from tests.support.platform import RunningPlatform, Tenant
from tools.console import node_environment

_RESOURCES: Final = "resources are not served"
_PROMPTS: Final = "prompts are not served"
_REQUESTS: Final = "requests of a server to the agent are not forwarded"
_NOTIFICATIONS: Final = "notifications of a server are not forwarded"

#: the scenarios that fail, each with the reason
EXPECTED_FAILURES: Final = {
    "completion-complete": "completions are not served",
    "dns-rebinding-protection": "no page in a browser may call servers, also not one of the same host",
    "elicitation-sep1034-defaults": _REQUESTS,
    "elicitation-sep1330-enums": _REQUESTS,
    "logging-set-level": _NOTIFICATIONS,
    "prompts-get-embedded-resource": _PROMPTS,
    "prompts-get-simple": _PROMPTS,
    "prompts-get-with-args": _PROMPTS,
    "prompts-get-with-image": _PROMPTS,
    "prompts-list": _PROMPTS,
    "resources-list": _RESOURCES,
    "resources-read-binary": _RESOURCES,
    "resources-read-text": _RESOURCES,
    "resources-subscribe": _RESOURCES,
    "resources-templates-read": _RESOURCES,
    "resources-unsubscribe": _RESOURCES,
    "tools-call-elicitation": _REQUESTS,
    "tools-call-sampling": _REQUESTS,
    "tools-call-with-logging": _NOTIFICATIONS,
    "tools-call-with-progress": _NOTIFICATIONS,
}
#: scenarios that must not be absent from a later version of the suite
PASSED: Final = {
    "json-schema-2020-12",
    "ping",
    "server-initialize",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-list",
}

_TEXT: Final = {"type": "text", "text": "This is a simple text response for testing."}
_IMAGE: Final = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
_AUDIO: Final = {"type": "audio", "data": "UklGRgQAAABXQVZF", "mimeType": "audio/wav"}
_RESOURCE: Final = {
    "type": "resource",
    "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource."},
}
#: the results of the tools that the scenarios call
_RESULTS: Final[dict[str, dict[str, Any]]] = {
    "test_simple_text": {"content": [_TEXT]},
    "test_image_content": {"content": [_IMAGE]},
    "test_audio_content": {"content": [_AUDIO]},
    "test_embedded_resource": {"content": [_RESOURCE]},
    "test_multiple_content_types": {"content": [_TEXT, _IMAGE, _RESOURCE]},
    "test_error_handling": {"content": [_TEXT], "isError": True},
    "test_tool_with_logging": {"content": [_TEXT]},
    "test_tool_with_progress": {"content": [_TEXT]},
}
_SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


async def respond(_: ScriptedServer, message: dict[str, Any], __: web.Request) -> web.Response | None:
    if message["method"] != "tools/call":
        return None
    return result(message, {"resultType": "complete", **_RESULTS[message["params"]["name"]]})


@asynccontextmanager
async def with_credential(url: str, key: str) -> AsyncIterator[str]:
    """Serve a path that adds an API key to each request, because the suite sends none. Yields its URL."""
    async with httpx2.AsyncClient(timeout=60) as http:

        async def forward(request: web.Request) -> web.Response:
            kept = {
                name: value for name, value in request.headers.items() if name.lower() not in {"host", "connection"}
            }
            answer = await http.request(
                request.method, url, content=await request.read(), headers={**kept, "Authorization": f"Bearer {key}"}
            )
            names = ("content-type", "mcp-session-id", "allow")
            headers = {name: answer.headers[name] for name in names if name in answer.headers}
            return web.Response(status=answer.status_code, body=answer.content, headers=headers)

        app = web.Application()
        app.router.add_route("*", "/mcp", forward)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        finally:
            await runner.cleanup()


async def results_of(url: str, folder: Path) -> dict[str, bool]:
    """Run all scenarios. Return whether each passes, by its name."""
    command = ["node", CONFORMANCE, "server", "--url", url, "--suite", "all", "--output-dir", folder]
    process = await asyncio.create_subprocess_exec(
        *command, env=node_environment(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 240)
    results = {}
    for path in folder.glob("*/checks.json"):
        match = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.+", path.parent.name)
        assert match is not None, path
        statuses = [check["status"] for check in json.loads(path.read_text())]
        results[match[1]] = "FAILURE" not in statuses
    assert results, output.decode()
    return results


async def test_the_scenarios_about_tools_pass(platform: RunningPlatform, tenant: Tenant, tmp_path: Path) -> None:
    await asyncio.to_thread(install_packages)
    async with scripted_server() as upstream:
        schema_tool = tool("json_schema_2020_12_tool", "Has an input schema.", inputSchema=_SCHEMA)
        upstream.tools = [*(tool(name, "Returns a prepared result.") for name in _RESULTS), schema_tool]
        upstream.respond = respond
        await grant(tenant, await register(tenant, upstream.url), tenant.user.id)
        key = await platform.new_key(tenant.user)
        async with platform.listening() as gateway, with_credential(f"{gateway}/mcp/weather", key) as url:
            results = await results_of(url, tmp_path)
    assert results.keys() >= PASSED
    assert sorted(name for name, has_passed in results.items() if not has_passed) == sorted(EXPECTED_FAILURES)
