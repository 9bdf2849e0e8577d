"""A server of the official MCP SDK as a process: `python -m tests.support.mcp_process PORT VARIANT`.

The variants are `modern` (both revisions, as the SDK serves them), `sessions` (only the older revision, with sessions)
and `json` (only the older revision, stateless, with answers in JSON).
"""

import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import EmbeddedResource, TextContent, TextResourceContents
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("weather", version="3.1", instructions="Ask for a place.", log_level="ERROR")
#: notes by session
notes: dict[str, list[str]] = {}


@server.tool()
def forecast(place: str, days: int = 1) -> str:
    """Returns the forecast for a place."""
    return f"Sunny in {place} for {days} days"


@server.tool()
def customer(number: int) -> dict[str, Any]:
    """Returns a customer."""
    return {"id": "4111 1111 1111 1111", "name": "Alice", "number": number}


@server.tool()
def document() -> list[EmbeddedResource | TextContent]:
    """Returns a document."""
    contents = TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="Mail alice@example.com")
    return [EmbeddedResource(type="resource", resource=contents)]


@server.tool()
def broken() -> str:
    """Fails."""
    raise ValueError("no such record of bob@example.com")


@server.tool()
def note(text: str, context: Context) -> str:
    """Adds a note to the session, and returns all of its notes."""
    session = context.headers.get("mcp-session-id", "") if context.headers else ""
    kept = notes.setdefault(session, [])
    kept.append(text)
    return ", ".join(kept)


class OlderRevision:
    """Refuses requests of the newer revision, as a server before 2026-07-28 does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-protocol-version") == b"2026-07-28":
            await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"Bad Request: Unsupported protocol version"})
            return
        await self._app(scope, receive, send)


def application(variant: str) -> ASGIApp:
    is_json = variant == "json"
    app = server.streamable_http_app(stateless_http=is_json, json_response=is_json)
    return app if variant == "modern" else OlderRevision(app)


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[2]), port=int(sys.argv[1]), log_level="warning")
