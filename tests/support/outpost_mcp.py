"""MCP servers of an organization whose agents call an outpost."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx2
from tests.support.mcp_servers import BASE, path_of
from tests.support.outpost_server import OutpostServer, Trust, until

REVISION = "2026-07-28"


def add_server(trust: Trust, name: str, *, access: str = "open", **fields: Any) -> dict[str, Any]:
    """Register a server at the platform, read its tools, and approve all of them."""
    with trust.admin() as admin:
        created = admin.post(BASE, json={"name": name, "access": access, **fields})
        assert created.status_code == 201, created.text
        server: dict[str, Any] = created.json()
        answer = admin.post(f"{BASE}/{server['id']}/refresh")
        assert answer.status_code == 200, answer.text
        for tool in admin.get(f"{BASE}/{server['id']}/tools", params={"limit": 200}).json()["mcp_tools"]:
            path = f"{BASE}/{server['id']}/tools/{tool['id']}/approve"
            assert admin.post(path, json={"hash": tool["hash"]}).status_code == 200
        server["tools"] = admin.get(f"{BASE}/{server['id']}/tools", params={"limit": 200}).json()["mcp_tools"]
    return server


def remove_server(trust: Trust, server: dict[str, Any]) -> None:
    with trust.admin() as admin:
        assert admin.delete(f"{BASE}/{server['id']}").status_code == 204


def send(
    outpost: OutpostServer, name: str, method: str, params: dict[str, Any] | None = None, key: str | None = None
) -> httpx2.Response:
    """Send a request of the newer revision to the outpost. An empty `name` stands for the path of all servers."""
    meta = {"io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**(params or {}), "_meta": meta}}
    headers = {"MCP-Protocol-Version": REVISION, "Mcp-Method": method}
    if method == "tools/call":
        headers["Mcp-Name"] = str((params or {}).get("name"))
    with outpost.client(key) as client:
        return client.post(path_of(name), json=body, headers=headers)


def call(outpost: OutpostServer, name: str, tool: str, key: str | None = None, /, **arguments: Any) -> httpx2.Response:
    return send(outpost, name, "tools/call", {"name": tool, "arguments": arguments}, key)


def text_of(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["result"]["content"][0]["text"]
    return text


def code_of(answer: httpx2.Response) -> str | None:
    """Return the code of the error in an answer, or None."""
    code: str | None = answer.json().get("error", {}).get("data", {}).get("code")
    return code


def listed(outpost: OutpostServer, name: str = "") -> list[str]:
    """Return the names of the tools that the outpost lists. The list of an unknown server is empty."""
    answer = send(outpost, name, "tools/list")
    return [tool["name"] for tool in answer.json().get("result", {}).get("tools", ())]


def wait_for(outpost: OutpostServer, server: dict[str, Any]) -> None:
    """Wait until the outpost offers the server's tools."""
    until(lambda: len(listed(outpost, server["name"])) == len(server["tools"]))


def tool_calls(trust: Trust, outpost: OutpostServer) -> list[dict[str, Any]]:
    """Return the audit events of the outpost's calls of tools, in the order of the chain."""
    rows = trust.server.sql(
        "SELECT action, outcome, reason, actor_id, resource_type, resource_id, details FROM audit_events"
        " WHERE action = 'mcp.tool_call' AND details->>'outpost_id' = %s ORDER BY sequence",
        [str(outpost.id)],
    )
    names = ("action", "outcome", "reason", "actor_id", "resource_type", "resource_id", "details")
    events = [dict(zip(names, row, strict=True)) for row in rows]
    for event in events:
        if isinstance(event["details"], str):
            event["details"] = json.loads(event["details"])
    return events


class ThreadedServer:
    """An MCP server of the newer revision and its token endpoint, in threads, so that a test may block. Each tool
    returns its arguments."""

    def __init__(self, *tools: str) -> None:
        self.tools = [{"name": name, "description": f"{name}.", "inputSchema": {"type": "object"}} for name in tools]
        #: the `Authorization` headers of calls, and of requests for tokens
        self.authorizations: list[str | None] = []
        self.clients: list[str | None] = []
        #: the arguments of calls
        self.calls: list[dict[str, Any]] = []
        handler = type("Handler", (_Handler,), {"mcp": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.base = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.url = f"{self.base}/mcp"

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"]:
            case "server/discover":
                return {"supportedVersions": [REVISION], "capabilities": {"tools": {}}}
            case "tools/list":
                return {"tools": self.tools}
            case _:
                self.calls.append(message["params"]["arguments"])
                text = json.dumps(message["params"]["arguments"])
                return {"resultType": "complete", "content": [{"type": "text", "text": text}]}

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    mcp: ThreadedServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        authorization = self.headers.get("Authorization")
        if self.path == "/token":
            self.mcp.clients.append(authorization)
            self._send({"access_token": f"token-{len(self.mcp.clients)}", "token_type": "Bearer", "expires_in": 3_600})
            return
        message = json.loads(body)
        if message["method"] == "tools/call":
            self.mcp.authorizations.append(authorization)
        self._send({"jsonrpc": "2.0", "id": message.get("id"), "result": self.mcp.answer(message)})

    def _send(self, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write no access log, because tests do not read it."""
