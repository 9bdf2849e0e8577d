"""Requests to MCP servers at an engine whose ports the test controls."""

import json
from typing import Any, Final
from uuid import uuid4

from tests.support.engine import EngineHarness

from gatehouse.engine.exchange import Answer, Received
from gatehouse.engine.mcp.definitions import read_definition
from gatehouse.policy.mcp import McpServerRecord, McpToolRecord

META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def server_record(name: str, *tools: str, approved_by_person: tuple[str, ...] = (), **fields: Any) -> McpServerRecord:
    """Return an open server of the newer revision."""
    records = []
    for tool in tools:
        definition = read_definition({"name": tool, "description": f"{tool} of {name}", "inputSchema": {}})
        records.append(
            McpToolRecord(
                id=uuid4(), name=tool, hash=definition.hash, definition=definition.text,
                approval_required=tool in approved_by_person,
            )
        )  # fmt: skip
    values = {"url": f"https://{name}.test/mcp", "revision": "2026-07-28", "access": "open", **fields}
    return McpServerRecord(id=uuid4(), name=name, tools=tuple(records), **values)


def received(harness: EngineHarness, body: bytes, path: str = "/mcp", method: str = "POST", **headers: str) -> Received:
    return Received(
        request_id="req-1", method=method, path=path, client_address="192.0.2.1", dialect=None,
        headers={name.lower().replace("_", "-"): value for name, value in headers.items()},
        received_at=harness.clock.now(), started=harness.clock.monotonic(), body=body,
    )  # fmt: skip


async def ask(
    harness: EngineHarness, method: str, params: dict[str, Any] | None = None, *, path: str = "/mcp"
) -> tuple[Answer, dict[str, Any]]:
    """Send a request of the newer revision. Returns the answer, and its body."""
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**(params or {}), "_meta": META}}
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
    if method == "tools/call":
        headers["mcp_name"] = str((params or {}).get("name"))
    raw = json.dumps(message).encode()

    async def read() -> bytes:
        return raw

    answer = await harness.engine.tools.answer(received(harness, raw, path, **headers), read, lambda: None)
    return answer, json.loads(answer.body or b"{}")


async def call(harness: EngineHarness, name: str, *, path: str = "/mcp", **arguments: Any) -> tuple[Answer, Any]:
    """Call a tool. Returns the answer, and its body."""
    return await ask(harness, "tools/call", {"name": name, "arguments": arguments}, path=path)


def returns(harness: EngineHarness, text: str = "done", count: int = 1) -> None:
    """Let servers answer the next calls."""
    result = {"resultType": "complete", "content": [{"type": "text", "text": text}]}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    harness.outbound.script += [(200, [body])] * count
