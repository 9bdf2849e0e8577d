"""MCP servers for tests: a server of the official SDK in a process of its own, and a scripted one."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from aiohttp import web
from tests.support.platform import RunningPlatform, Tenant
from tests.support.ports import free_port

from gatehouse.platform.keeper.drain import Drain

BASE: Final = "/api/v1/admin/mcp/servers"
_ROOT: Final = Path(__file__).parents[2]


@contextmanager
def sdk_server(variant: str) -> Iterator[str]:
    """Start a server (`tests.support.mcp_process`). Yields its URL."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.mcp_process", str(port), variant],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx2.get(f"http://127.0.0.1:{port}/none")
                break
            except httpx2.TransportError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


Respond = Callable[["ScriptedServer", dict[str, Any], web.Request], Awaitable[web.StreamResponse | None]]


class ScriptedServer:
    """A server of the newer revision whose tools and behaviour a test changes. `respond` may answer a request instead
    of the server. None stands for the usual answer."""

    def __init__(self) -> None:
        self.url = ""
        self.tools: list[dict[str, Any]] = [tool("echo", "Returns the text.")]
        self.respond: Respond | None = None
        #: the messages of all requests, with their headers
        self.seen: list[tuple[dict[str, Any], dict[str, str]]] = []

    def calls(self) -> list[dict[str, Any]]:
        return [message["params"] for message, _ in self.seen if message["method"] == "tools/call"]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        self.seen.append((message, {name.lower(): value for name, value in request.headers.items()}))
        if self.respond is not None and (answer := await self.respond(self, message, request)) is not None:
            return answer
        results = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": self.tools},
            "tools/call": text_result("done"),
        }
        return result(message, results[message["method"]])


def tool(name: str, description: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **fields}


def text_result(text: str) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}


def result(message: dict[str, Any], value: dict[str, Any]) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": value})


class TokenEndpoint:
    """An OAuth token endpoint. It issues the tokens `token-1`, `token-2` and so on."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.lifetime_seconds = 3_600
        #: the forms of all requests, with their headers
        self.seen: list[tuple[dict[str, str], dict[str, str]]] = []

    async def handle(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.seen.append((form, {name.lower(): value for name, value in request.headers.items()}))
        if self.status != 200:
            return web.json_response({"error": "invalid_client"}, status=self.status)
        token = {"access_token": f"token-{len(self.seen)}", "token_type": "Bearer", "expires_in": self.lifetime_seconds}
        return web.json_response(token)


@asynccontextmanager
async def token_endpoint() -> AsyncIterator[TokenEndpoint]:
    endpoint = TokenEndpoint()
    async with _listening("/token", endpoint.handle) as endpoint.url:
        yield endpoint


@asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer()
    async with _listening("/mcp", server.handle) as server.url:
        yield server


@asynccontextmanager
async def _listening(path: str, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """Serve a path. Yields its URL."""
    app = web.Application(client_max_size=64 * 1024**2)
    app.router.add_route("*", path, handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}{path}"
    finally:
        await runner.cleanup()


async def register(tenant: Tenant, url: str, name: str = "weather", **fields: Any) -> dict[str, Any]:
    """Register a server, read its tools, and approve all of them."""
    client = tenant.admin.client
    answer = await client.post(BASE, json={"name": name, "url": url, **fields})
    assert answer.status_code == 201, answer.text
    server: dict[str, Any] = answer.json()
    await refresh(tenant, server["id"])
    for row in await tools(tenant, server["id"]):
        await approve(tenant, row)
    return server


async def refresh(tenant: Tenant, server_id: str) -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/{server_id}/refresh")
    assert answer.status_code == 200, answer.text
    refreshed: dict[str, Any] = answer.json()
    return refreshed


async def tools(tenant: Tenant, server_id: str) -> list[dict[str, Any]]:
    answer = await tenant.admin.client.get(f"{BASE}/{server_id}/tools", params={"limit": 200})
    rows: list[dict[str, Any]] = answer.json()["mcp_tools"]
    return rows


async def approve(tenant: Tenant, row: dict[str, Any]) -> None:
    path = f"{BASE}/{row['server_id']}/tools/{row['id']}/approve"
    answer = await tenant.admin.client.post(path, json={"hash": row["hash"]})
    assert answer.status_code == 200, answer.text


async def grant(tenant: Tenant, server: dict[str, Any], subject_id: object, **fields: Any) -> dict[str, Any]:
    body = {"subject_type": "user", "subject_id": str(subject_id), "access_type": "ALLOW", **fields}
    answer = await tenant.admin.client.post(f"{BASE}/{server['id']}/access", json=body)
    assert answer.status_code == 201, answer.text
    rule: dict[str, Any] = answer.json()
    return rule


#: the name of a server that stands for the path of all servers
ALL: Final = ""


def path_of(name: str) -> str:
    return f"/mcp/{name}" if name else "/mcp"


async def send(
    client: httpx2.AsyncClient, name: str, method: str, params: dict[str, Any] | None = None, **headers: str
) -> httpx2.Response:
    """Send a request of the newer revision, as an agent does. `name` may be `ALL`."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**(params or {}), "_meta": meta}}
    mirrored = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if method == "tools/call":
        mirrored["Mcp-Name"] = str((params or {}).get("name"))
    return await client.post(path_of(name), json=body, headers={**mirrored, **headers})


async def call(client: httpx2.AsyncClient, name: str, tool_name: str, **arguments: Any) -> httpx2.Response:
    return await send(client, name, "tools/call", {"name": tool_name, "arguments": arguments})


async def send_older(
    client: httpx2.AsyncClient, name: str, method: str, params: dict[str, Any] | None = None, **headers: str
) -> httpx2.Response:
    """Send a request of the older revision."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}}
    return await client.post(path_of(name), json=body, headers={"MCP-Protocol-Version": "2025-11-25", **headers})


async def begin_session(client: httpx2.AsyncClient, name: str) -> str:
    """Initialize a session of the older revision. Returns its id."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    answer = await send_older(client, name, "initialize", params)
    assert answer.status_code == 200, answer.text
    session_id: str = answer.headers["mcp-session-id"]
    await client.post(
        path_of(name),
        json={"jsonrpc": "2.0", "method": "notifications/initialized"},
        headers={"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session_id},
    )
    return session_id


async def recorded(platform: RunningPlatform, tenant: Tenant) -> list[dict[str, Any]]:
    """Return the audit events of the calls, oldest first."""
    drain = Drain(platform.installed.url, platform.host.settings.gatehouse_home / "journal")
    drain.start()
    await asyncio.to_thread(drain.stop, 20)
    return sorted(await platform.audit(tenant, "mcp.tool_call"), key=lambda event: event["timestamp"])


async def wait_for_approval(tenant: Tenant) -> dict[str, Any]:
    """Wait for a call that is held, and return its approval."""
    async with asyncio.timeout(30):
        while True:
            listed = (await tenant.admin.client.get("/api/admin/approvals?status=pending")).json()
            if listed["total"]:
                approval: dict[str, Any] = listed["items"][0]
                return approval
            await asyncio.sleep(0.05)


async def forever() -> None:
    await asyncio.Event().wait()
